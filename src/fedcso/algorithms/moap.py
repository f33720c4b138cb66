"""MOAP: one tracked inner value for each ξ, ALL of which decay at every step; with momentum.

    y_i ← (1 − γ) y_i + γ (n/b) ĝ(x_t, ξ_i)          for the ξ_i of the step's batch,   n the client's number of ξ
    y_i ← (1 − γ) y_i                                for all others
    z_{t+1} = (1/b) Σ_i ∇ĝ(x_t, ξ_i)ᵀ ∇f_{ξ_i}(y_i)
    u_{t+1} = (1 − β) u_t + β z_{t+1}
    x_{t+1} = Π_X( x_t − α u_{t+1} ),       x and u averaged over clients after every q steps

The table follows the unbiased estimate of ALL inner values that a batch gives: (n/b) ĝ_i for the sampled ξ_i, 0 for the
others. A value therefore jumps by γ (n/b) ĝ_i when its ξ is sampled and fades in between, where SOX leaves it as it is.
If every step samples every ξ, it is SOX. y_i = 0 at first (with γ = 1 in the first step, they start as SOX's do), and
u_1 = z_1. b counts different ξ: of one that was drawn twice, the later value is stored. Clients send x and u, and keep
all y_i.

Reference: Wang, Yang, Zhang, Yang, Momentum Accelerates the Convergence of Stochastic AUPRC Maximization, AISTATS 2022.
The update of y is that of the public code of SOX for average precision, whose authors overlap; the projection of y
onto a box, which the paper's analysis may use, could not be verified and is left out.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from fedcso.algorithms.sox import empty_table, put_rows, require_states_fit, rows_of, share_of_rows
from fedcso.core.algorithm import Algorithm, Schedule, Server, State, at
from fedcso.core.errors import require_fraction, require_positive
from fedcso.core.oracle import Oracle
from fedcso.core.plan import Plan
from fedcso.core.problem import Batch, Problem
from fedcso.core.tree import Tree, add_scaled, index, map_leaves, mix, zeros_like


@dataclass(frozen=True)
class MOAP(Algorithm):
    """One tracked inner value for each ξ, all of which decay at every step, with momentum; for average precision.

    learning_rate is α, tracking is γ, momentum is β (1 for none).
    """

    learning_rate: Schedule = 0.01
    tracking: Schedule = 0.5
    momentum: Schedule = 0.1
    use_when: ClassVar[str] = "as SOX, with values that fade while their ξ is not sampled; a baseline for AUPRC"

    stacks: ClassVar[bool] = False
    tracks: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_positive("learning_rate", self.learning_rate)
        require_fraction("tracking", self.tracking)
        require_fraction("momentum", self.momentum)

    def check(self, plan: Plan, problem: Problem, clients: Sequence[Any]) -> None:
        """Raise `FedcsoError` unless there are finitely many ξ and their states fit into memory."""
        require_states_fit("MOAP", problem, clients)

    def init(self, x: Tree) -> Server:
        """Return x and u; the first step sets u."""
        return Server({"x": x, "u": zeros_like(x)})

    def step(self, state: State, oracle: Oracle, batch: Batch, t: int) -> State:
        """Let all tracked values decay, add those of the batch's ξ, update the momentum u, then descend."""
        x, u, weight = state.shared["x"], state.shared["u"], at(self.tracking, t)
        g_hat, chain = oracle.inner(x, batch, each=True)
        rows = rows_of(oracle, batch)
        table = state.local["y"] if state.local else empty_table(oracle, g_hat)
        decayed = map_leaves(lambda leaf: (1 - weight) * leaf, table)
        y = add_scaled(index(decayed, rows), g_hat, weight / share_of_rows(oracle, rows))
        z = chain(y)
        u = z if t == 0 else mix(u, z, at(self.momentum, t))
        moved = oracle.move(x, u, at(self.learning_rate, t))
        return State({"x": moved, "u": u}, {"y": put_rows(decayed, rows, y)})
