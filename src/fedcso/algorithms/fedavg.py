"""FedAvg: local stochastic gradient steps on the ordinary loss, then averaging.

    x_{t+1} = Π_X( x_t − α (1/b) Σ_i ∇f(x_t; ξ_i) ),        averaged over clients after every q steps

For problems whose g is the identity (such as `classification`), where FCSG is the same method. Clients send x and keep
nothing.

Reference: McMahan et al., Communication-Efficient Learning of Deep Networks from Decentralized
Data, AISTATS 2017.
"""

from dataclasses import dataclass
from typing import ClassVar

from fedcso.core.algorithm import Algorithm, Schedule, State, at
from fedcso.core.errors import require_positive
from fedcso.core.oracle import Oracle
from fedcso.core.problem import Batch, Problem


@dataclass(frozen=True)
class FedAvg(Algorithm):
    """Local stochastic gradient steps, then averaging, for ordinary federated learning.

    learning_rate is α.
    """

    learning_rate: Schedule = 0.01

    use_when: ClassVar[str] = "if nothing is nested"

    def __post_init__(self) -> None:
        require_positive("learning_rate", self.learning_rate)

    def remark(self, problem: Problem) -> str:
        """Say that on a nested problem this is another method."""
        if not problem.inner_samples(1, 1):
            return ""
        name = type(problem).__name__
        return f"FedAvg on {name} is FCSG, because the loss of {name} is nested; ordinary FedAvg: run cross_entropy"

    def step(self, state: State, oracle: Oracle, batch: Batch, t: int) -> State:
        """Take one SGD step."""
        x = state.shared["x"]
        return State({"x": oracle.move(x, oracle.grad(x, batch), at(self.learning_rate, t))})
