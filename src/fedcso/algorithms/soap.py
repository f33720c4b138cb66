"""SOAP: average precision with one tracked pair (y₁, y₂) for each positive example.

    y_i ← (1 − γ) y_i + γ ĝ(x_t, z⁺_i),       x ← Π_X( x − α (1/b) Σ_i ∇ĝ(x_t, z⁺_i)ᵀ ∇f(y_i) )

This is SOX without momentum. It works with small inner batches, at the price of a state that grows with the number of
positives, which the methods of the paper on conditional optimisation do not need. Clients send x and keep all y_i.

Reference: Qi, Luo, Xu, Ji, Yang, Stochastic Optimization of Areas Under Precision-Recall Curves with Provable
Convergence, NeurIPS 2021.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from fedcso.algorithms.sox import require_states_fit, track_each
from fedcso.core.algorithm import Algorithm, Schedule, State, at
from fedcso.core.errors import require_fraction, require_positive
from fedcso.core.oracle import Oracle
from fedcso.core.plan import Plan
from fedcso.core.problem import Batch, Problem
from fedcso.core.tree import mix


@dataclass(frozen=True)
class SOAP(Algorithm):
    """One tracked inner value for each positive example, without momentum; for average precision.

    learning_rate is α, tracking is γ.
    """

    learning_rate: Schedule = 0.01
    tracking: Schedule = 0.5
    stacks: ClassVar[bool] = False
    tracks: ClassVar[bool] = True
    use_when: ClassVar[str] = "for average precision with few positives and small inner batches"

    def __post_init__(self) -> None:
        require_positive("learning_rate", self.learning_rate)
        require_fraction("tracking", self.tracking)

    def check(self, plan: Plan, problem: Problem, clients: Sequence[Any]) -> None:
        """Raise `FedcsoError` unless there are finitely many ξ and their states fit into memory."""
        require_states_fit("SOAP", problem, clients)

    def step(self, state: State, oracle: Oracle, batch: Batch, t: int) -> State:
        """Update the tracked values of the batch's ξ, then descend."""
        x = state.shared["x"]
        z, local = track_each(state.local, oracle, x, batch, partial(mix, weight=at(self.tracking, t)))
        return State({"x": oracle.move(x, z, at(self.learning_rate, t))}, local)
