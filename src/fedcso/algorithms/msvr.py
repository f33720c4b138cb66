"""MSVR: SOX whose tracked inner values follow the iterates, by variance reduction.

    y_i ← (1 − γ) y_i + γ ĝ(x_t, ξ_i) + θ ( ĝ(x_t, ξ_i) − ĝ(x_{t−1}, ξ_i) )      for the ξ_i of the step's batch
    z_{t+1} = (1/b) Σ_i ∇ĝ(x_t, ξ_i)ᵀ ∇f_{ξ_i}(y_i)
    u_{t+1} = (1 − β) u_t + β z_{t+1}
    x_{t+1} = Π_X( x_t − α u_{t+1} ),       x and u averaged over clients after every q steps
    θ = ρ ( (n − b) / (b (1 − γ)) + 1 − γ ),       n the client's number of ξ;   ρ = 1 in the paper

Both ĝ are taken on the SAME η. The first term of θ makes up for the steps in which ξ_i was not sampled, the second is
that of STORM, which remains if every step samples every ξ. With ρ = 0 it is SOX. θ is about n/b, so large steps are
amplified, and y_i can leave the range of g, which is dangerous where f has a pole (auprc): choose a smaller learning
rate than for SOX, or ρ < 1. γ should be at most ½; with γ = 1 nothing old remains that could be corrected, and θ = 0.
y_i = ĝ when ξ_i is first sampled, and u_1 = z_1. b counts different ξ: of one that was drawn twice, the later value is
stored. Clients send x and u, and keep all y_i and their previous iterate x_{t−1} (the x they receive when they first
take part).

Reference: Jiang et al., Multi-block-Single-probe Variance Reduced Estimator for Coupled Compositional Optimization,
NeurIPS 2022. y and θ follow equation (4) of its journal version, and u its method v1, except that ∇f is taken at the
new y_i, as in SOX, and not at the previous one. Method v2, which applies STORM to u too, is not included.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from fedcso.algorithms.sox import require_states_fit, rows_of, share_of_rows, track_each
from fedcso.core.algorithm import Algorithm, Schedule, Server, State, at
from fedcso.core.errors import require_fraction, require_nonnegative, require_positive
from fedcso.core.oracle import Oracle
from fedcso.core.plan import Plan
from fedcso.core.problem import Batch, Problem
from fedcso.core.tree import Tree, Weight, add_scaled, mix, subtract, without, zeros_like


@dataclass(frozen=True)
class MSVR(Algorithm):
    """SOX with variance reduction of the inner value that is tracked for each ξ; for finitely many ξ.

    learning_rate is α, tracking is γ, momentum is β (1 for none), correction is ρ.
    """

    learning_rate: Schedule = 0.01
    tracking: Schedule = 0.5
    momentum: Schedule = 0.1
    correction: Schedule = 1.0
    """The factor of the correction: 1 as in the paper, 0 for none, which is SOX."""

    use_when: ClassVar[str] = "as SOX, with values that follow the iterates; for slow, long runs"

    stacks: ClassVar[bool] = False
    tracks: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_positive("learning_rate", self.learning_rate)
        require_fraction("tracking", self.tracking)
        require_fraction("momentum", self.momentum)
        require_nonnegative("correction", self.correction)

    def check(self, plan: Plan, problem: Problem, clients: Sequence[Any]) -> None:
        """Raise `FedcsoError` unless there are finitely many ξ and their states fit into memory."""
        require_states_fit("MSVR", problem, clients)

    def init(self, x: Tree) -> Server:
        """Return x and u; the first step sets u."""
        return Server({"x": x, "u": zeros_like(x)})

    def step(self, state: State, oracle: Oracle, batch: Batch, t: int) -> State:
        """Update the tracked values of the batch's ξ and the momentum u, then descend."""
        x, u, weight = state.shared["x"], state.shared["u"], at(self.tracking, t)
        previous = state.local.get("previous", x)
        theta = at(self.correction, t) * self._theta(weight, share_of_rows(oracle, rows_of(oracle, batch)))

        def renew(known: Tree, g_hat: Tree) -> Tree:
            change = subtract(g_hat, oracle.inner(previous, batch, each=True)[0])
            return add_scaled(mix(known, g_hat, weight), change, theta)

        z, table = track_each(without(state.local, "previous"), oracle, x, batch, renew)
        u = z if t == 0 else mix(u, z, at(self.momentum, t))
        return State({"x": oracle.move(x, u, at(self.learning_rate, t)), "u": u}, table | {"previous": x})

    @staticmethod
    def _theta(weight: Weight, share: float) -> Weight:
        """Return θ for ρ = 1, given γ and b/n."""
        return 0.0 if weight == 1 else (1 / share - 1) / (1 - weight) + 1 - weight
