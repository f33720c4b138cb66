"""FCSG-M: FCSG with momentum (Algorithm 1, green lines).

    u_{t+1} = (1 − β) u_t + (β/b) Σ_i ∇F̂(x_t; ξ_i, B_i),      u_1 from B outer samples
    x_{t+1} = Π_X( x_t − α u_{t+1} ),        x and u averaged over clients after every q steps

Clients send x and u, and keep nothing. With β = 1 it is FCSG.

Reference: Wu et al., Federated Conditional Stochastic Optimization, NeurIPS 2023.
"""

from dataclasses import dataclass
from typing import ClassVar

from fedcso.core.algorithm import Algorithm, Schedule, Server, State, at
from fedcso.core.errors import require_fraction, require_positive
from fedcso.core.oracle import Oracle
from fedcso.core.problem import Batch
from fedcso.core.tree import Tree, mix, zeros_like


@dataclass(frozen=True)
class FCSGM(Algorithm):
    """FCSG with momentum, which is averaged over clients as well (Algorithm 1).

    learning_rate is α, momentum is β (the weight of the NEW gradient).
    """

    learning_rate: Schedule = 0.01
    momentum: Schedule = 0.1

    steady: ClassVar[bool] = True
    use_when: ClassVar[str] = "for small batches: momentum reduces their noise, and sends twice as much"

    def __post_init__(self) -> None:
        require_positive("learning_rate", self.learning_rate)
        require_fraction("momentum", self.momentum)

    def init(self, x: Tree) -> Server:
        """Return x and u; u = 0 is never used, because step 0 sets u."""
        return Server({"x": x, "u": zeros_like(x)})

    def step(self, state: State, oracle: Oracle, batch: Batch, t: int) -> State:
        """Perform lines 12–13 and 15 (line 2 at t = 0), then lines 5–11 of the next iteration."""
        x, u = state.shared["x"], state.shared["u"]
        gradient = oracle.grad(x, batch)
        u = gradient if t == 0 else mix(u, gradient, at(self.momentum, t))
        return State({"x": oracle.move(x, u, at(self.learning_rate, t)), "u": u})
