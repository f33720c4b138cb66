"""FCSG: federated conditional stochastic gradient (Algorithm 1, blue lines).

    u_{t+1} = (1/b) Σ_i ∇F̂(x_t; ξ_i, B_i)
    x_{t+1} = Π_X( x_t − α u_{t+1} ),        averaged over clients after every q steps

Clients send x and keep nothing.

Reference: Wu et al., Federated Conditional Stochastic Optimization, NeurIPS 2023.
"""

from dataclasses import dataclass
from typing import ClassVar

from fedcso.core.algorithm import Algorithm, Schedule, State, at
from fedcso.core.errors import require_positive
from fedcso.core.oracle import Oracle
from fedcso.core.problem import Batch


@dataclass(frozen=True)
class FCSG(Algorithm):
    """Federated conditional stochastic gradient: local steps along estimates of ∇F, then averaging (Algorithm 1).

    learning_rate is α.
    """

    learning_rate: Schedule = 0.01

    steady: ClassVar[bool] = True
    use_when: ClassVar[str] = "as a first choice; only the learning rate has to be set"

    def __post_init__(self) -> None:
        require_positive("learning_rate", self.learning_rate)

    def step(self, state: State, oracle: Oracle, batch: Batch, t: int) -> State:
        """Perform lines 12–14, then lines 5–11 of the next iteration."""
        x = state.shared["x"]
        u = oracle.grad(x, batch)
        return State({"x": oracle.move(x, u, at(self.learning_rate, t))})
