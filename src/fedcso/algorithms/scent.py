"""SCENT: one tracked inner value for each ξ, with a weight that adapts to its level; for f(y) = λ log y.

    ν_i ← ν_i + log(1 + a ĝ(x_t, ξ_i)) − log(1 + a e^{ν_i})        for the ξ_i of the step's batch
    z_{t+1} = (1/b) Σ_i ∇ĝ(x_t, ξ_i)ᵀ ∇f(e^{ν_i})
    x_{t+1} = Π_X( x_t − α z_{t+1} ),       averaged over clients after every q steps

For objectives λ log E exp(s) (distributionally robust within clients, partial AUC, contrastive losses), where exp(s)
ranges over orders of magnitude and z is the mean of λ exp(s − ν_i) ∇s. With y_i = e^{ν_i} the update is

    y_i ← (1 − γ_i) y_i + γ_i ĝ,      γ_i = a y_i / (1 + a y_i):

SOX without momentum, whose weight γ_i is small where y_i is. So a single large ĝ can't spoil a small y_i: it raises ν_i
by log(1 + a ĝ) at most. As a → ∞ all γ_i = 1, and it is FCSG. y_i = ĝ when ξ_i is first sampled.
y_i is stored, because ∇f needs it; the problem's g must be scaled so that it does not overflow. Clients send x and keep
all y_i.

Reference: Wei et al., arXiv:2602.02877; the update is that of the authors' public code, where a is given by its
logarithm and x may have momentum, which is left out here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from fedcso.algorithms.sox import require_states_fit, track_each
from fedcso.core.algorithm import Algorithm, Schedule, State, at
from fedcso.core.errors import FedcsoError, require_positive
from fedcso.core.oracle import Oracle
from fedcso.core.plan import Plan
from fedcso.core.problem import Batch, Problem
from fedcso.core.streams import stream
from fedcso.core.tree import Tree, map_leaves


@dataclass(frozen=True)
class SCENT(Algorithm):
    """One tracked inner value for each ξ, with a weight that adapts to its level; for logarithms of means.

    learning_rate is α, dual_rate is a.
    """

    learning_rate: Schedule = 0.01
    dual_rate: Schedule = 1.0
    use_when: ClassVar[str] = "as SOAP, for logarithms of means, where inner values range over orders of magnitude"
    stacks: ClassVar[bool] = False
    tracks: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_positive("learning_rate", self.learning_rate)
        require_positive("dual_rate", self.dual_rate)

    def check(self, plan: Plan, problem: Problem, clients: Sequence[Any]) -> None:
        """Raise `FedcsoError` unless f(y) = λ log y, there are finitely many ξ, and their states fit into memory."""
        require_states_fit("SCENT", problem, clients)
        for data in clients:
            if problem.trains(data) and not _is_logarithm(problem, data):
                raise FedcsoError(
                    f"SCENT can't be used with {type(problem).__name__}: it needs f(y) = λ log y of a positive number "
                    "y, as in λ log E exp(ℓ/λ); use SOX"
                )

    def step(self, state: State, oracle: Oracle, batch: Batch, t: int) -> State:
        """Update the tracked values of the batch's ξ, then descend."""
        x, a = state.shared["x"], at(self.dual_rate, t)

        def renew(known: Tree, g_hat: Tree) -> Tree:
            return map_leaves(lambda y, new: y / (1 + a * y) * (1 + a * new), known, g_hat)

        z, local = track_each(state.local, oracle, x, batch, renew)
        return State({"x": oracle.move(x, z, at(self.learning_rate, t))}, local)


def _is_logarithm(problem: Problem, data: Any) -> bool:
    """Return whether f grows by the same positive number whenever y is doubled, for a single positive number y."""
    rng = stream(0, 0, 0)
    xi = problem.sample_outer(data, rng, (1,))
    y = problem.inner(problem.init(rng), xi, problem.sample_inner(data, rng, xi, 1))
    if not (isinstance(y, torch.Tensor) and y.numel() == 1 and bool((y > 0).all())):
        return False
    with torch.no_grad():
        once, twice, four_times = (float(problem.outer(factor * y, xi)[0]) for factor in (1, 2, 4))
    growth = twice - once
    return growth > 0 and abs(four_times - twice - growth) < 1e-4 * growth
