"""FeDXL2: average precision over ALL clients' data, by comparing scores with those that others sent a round ago.

    min_x  Σ_i w_i E_{z ∈ S1_i} f( Σ_j w_j E_{z' ∈ S2_j} ℓ(h(x; z), h(x; z')) )

The inner mean is over all clients j, whereas other methods compare an example with those of its own client only. ℓ sees
data through scores alone, so clients exchange scores. a = h(x; z₁) and c = h(x; z₂) are those of a step's outer and
inner samples; a', f'(u') and c' are those of all clients and steps of the PREVIOUS round, constants in two pools:

    u(z₁) ← (1 − γ) u(z₁) + γ mean_{c'} ℓ(a, c')                          for each z₁ of the batch
    G = mean_{z₁, c'} f'(u(z₁)) ∂₁ℓ(a, c') ∇h(x; z₁) + mean_{z₂, a'} f'(u') ∂₂ℓ(a', c) ∇h(x; z₂)
    M ← (1 − β) M + β G,       x ← Π_X( x − α M ),       x and M averaged over clients after every q steps

For average precision z₁ is a positive, z₂ any example, and u the pair (g₁, g₂). M (the key u) is G in the first step,
and u(z) is ĝ when z is first drawn. Means over pools are over the whole pools, weighted by client; the paper draws
parts of them, with the same expectation. In the first round there are no pools yet and a client uses its own scores;
the paper fills the pools by one pass over the data at x_0.

Clients send x, M and, FOR EACH EXAMPLE THAT THEY DREW, its score (a with f'(u); c with whether it is positive), and the
server passes the scores of all on to all. Clients keep all u(z).

Reference: Guo, Jin, Luo, Yang, FeDXL: Provable Federated Learning for Deep X-Risk Optimization, ICML 2023. The rule is
that of the authors' code, except that all of M is averaged (there, the last parameter's only). Partial participation
could not be verified: the pools are those of the clients that took part in the previous round.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import torch
from torch.func import grad_and_value

from fedcso.algorithms.sox import require_states_fit, track_values
from fedcso.core.algorithm import Algorithm, Schedule, Server, State, at
from fedcso.core.codec import concatenate
from fedcso.core.errors import FedcsoError, require_fraction, require_positive
from fedcso.core.oracle import Oracle
from fedcso.core.plan import Plan
from fedcso.core.problem import Batch, Pairwise, Problem
from fedcso.core.tree import Tree, leaves, map_leaves, mix, zeros_like


@dataclass(frozen=True)
class FeDXL2(Algorithm):
    """Average precision over all clients' data: examples are compared with other clients' scores of the last round.

    learning_rate is α, tracking is γ, momentum is β (1 for none).
    """

    learning_rate: Schedule = 0.01
    tracking: Schedule = 0.5
    momentum: Schedule = 0.1
    use_when: ClassVar[str] = "for average precision over all clients' data together, where scores may leave a site"
    pooled: ClassVar[frozenset[str]] = frozenset({"outer", "inner"})
    stacks: ClassVar[bool] = False
    tracks: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_positive("learning_rate", self.learning_rate)
        require_fraction("tracking", self.tracking)
        require_fraction("momentum", self.momentum)

    def check(self, plan: Plan, problem: Problem, clients: Sequence[Any]) -> None:
        """Raise `FedcsoError` unless the problem compares scores, and has finitely many ξ whose states fit."""
        if not isinstance(problem, Pairwise):
            raise FedcsoError(
                f"FeDXL2 can't be used with {type(problem).__name__}: it needs a problem that compares scores of "
                "examples, such as auprc"
            )
        require_states_fit("FeDXL2", problem, clients)

    def remark(self, problem: Problem) -> str:
        """Return what leaves a client."""
        return "FeDXL2 sends the scores of single examples to the server, and from there to all clients"

    def init(self, x: Tree) -> Server:
        """Return x, M and empty pools."""
        return Server({"x": x, "u": zeros_like(x), "inner": (), "outer": ()})

    def receive(self, shared: dict[str, Tree], local: dict[str, Tree] | None) -> State:
        """Set the pools aside, and begin lists of the round's own scores."""
        pools = {name: shared[name] for name in self.pooled}
        return State(shared | {name: [] for name in self.pooled}, {"u": {}} | (local or {}) | pools)

    def step(self, state: State, oracle: Oracle, batch: Batch, t: int) -> State:
        """Compare this step's scores with the pools, update u(z₁) and M, then descend."""
        problem, x, local = oracle.problem, state.shared["x"], state.local
        assert isinstance(problem, Pairwise)  # `check` requires it
        a, c, chain = oracle.scores(x, batch)
        inner = _in_a_row(c)
        others = local["inner"] or concatenate([inner], [1.0])
        g_hat = problem.compare(a, others["entries"], others["weight"])
        u, table = track_values(local["u"], oracle, batch, g_hat, partial(mix, weight=at(self.tracking, t)))
        slopes, loss = grad_and_value(lambda u: oracle.problem.outer(u, batch.xi).mean())(u)
        outer = {"score": a, "slope": map_leaves(lambda leaf: leaf * len(leaf), slopes)}
        old = local["outer"] or concatenate([outer], [1.0])
        z = chain(loss, partial(_objective, problem, outer["slope"], others, old))
        direction = z if t == 0 else mix(state.shared["u"], z, at(self.momentum, t))
        moved = oracle.move(x, direction, at(self.learning_rate, t))
        lists = {"inner": [*state.shared["inner"], inner], "outer": [*state.shared["outer"], outer]}
        return State({"x": moved, "u": direction} | lists, local | {"u": table})

    def send(self, state: State, steps: range) -> State:
        """Send the lists of scores, and forget the pools."""
        lists = {name: _joined(state.shared[name]) for name in self.pooled}
        return State(state.shared | lists, {"u": state.local["u"]})


def _joined(parts: Sequence[Tree]) -> Tree:
    """Return the entries of all steps in a row; () if there were no steps."""
    return map_leaves(lambda *some: torch.cat(some), *parts) if parts else ()


def _objective(problem: Pairwise, slopes: Tree, inner: Tree, outer: Tree, a: Tree, c: Tree) -> torch.Tensor:
    """Return the function of a step's scores a and c whose gradient in x is G, given f'(u) and the two pools."""
    c = _in_a_row(c)
    own = len(leaves(c)[0])
    as_many = (inner["weight"].sum() / own).expand(own)  # the client's own η stand for as many as are in the pool
    first = problem.compare(a, inner["entries"], inner["weight"])
    second = problem.compare(outer["entries"]["score"], c, as_many)
    weight: torch.Tensor = outer["weight"]
    return _dot(slopes, first).mean() + (weight * _dot(outer["entries"]["slope"], second)).mean()


def _dot(a: Tree, b: Tree) -> torch.Tensor:
    """Return the inner product of two trees for each index of the first axis."""
    products = [(p * q).flatten(1).sum(1) for p, q in zip(leaves(a), leaves(b), strict=True)]
    return torch.stack(products).sum(0)


def _in_a_row(inner: Tree) -> Tree:
    """Return what is known of η, which belong to no ξ, along one axis instead of (b, m) or (1, m)."""
    return map_leaves(lambda leaf: leaf.flatten(0, 1), inner)
