"""BSGD: biased stochastic gradient descent on one machine.

    x_{t+1} = Π_X( x_t − α (1/b) Σ_i ∇F̂(x_t; ξ_i, B_i) )

This is FCSG with N = 1 and q = 1; other plans are refused. The client sends x and keeps nothing.

Reference: Hu et al., Biased Stochastic First-Order Methods for Conditional Stochastic Optimization
and Applications in Meta Learning, NeurIPS 2020.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from fedcso.algorithms.fcsg import FCSG
from fedcso.core.algorithm import Algorithm, Schedule, State
from fedcso.core.errors import require_positive
from fedcso.core.oracle import Oracle
from fedcso.core.plan import Plan, require_single_machine
from fedcso.core.problem import Batch, Problem


@dataclass(frozen=True)
class BSGD(Algorithm):
    """Biased stochastic gradient descent on one machine: FCSG with one client and no local steps.

    learning_rate is α.
    """

    learning_rate: Schedule = 0.01

    use_when: ClassVar[str] = "as a baseline on pooled data"

    def __post_init__(self) -> None:
        require_positive("learning_rate", self.learning_rate)

    def check(self, plan: Plan, problem: Problem, clients: Sequence[Any]) -> None:
        """Raise `InvalidValue` unless there is one client and q = 1."""
        require_single_machine("BSGD", plan, len(clients))

    def step(self, state: State, oracle: Oracle, batch: Batch, t: int) -> State:
        """Take a step of FCSG."""
        return FCSG(self.learning_rate).step(state, oracle, batch, t)
