"""Acc-FCSG-M: FCSG-M accelerated by momentum-based variance reduction (Algorithm 2).

    u_{t+1} = (1/b) Σ_i ∇F̂(x_t; ξ_i, B_i) + (1 − β) ( u_t − (1/b) Σ_i ∇F̂(x_{t−1}; ξ_i, B_i) )
    x_{t+1} = Π_X( x_t − α u_{t+1} ),        x and u averaged over clients after every q steps

Both gradients are taken on the SAME ξ_i and B_i, so that their noise cancels. u_1 comes from B outer samples. Clients
send x and u, and keep their previous iterate x_{t−1}; a client that missed a round takes its first step as in FCSG-M.
With β = 1 it is FCSG.

Reference: Wu et al., Federated Conditional Stochastic Optimization, NeurIPS 2023.
"""

from dataclasses import dataclass
from typing import ClassVar

from fedcso.core.algorithm import Algorithm, Schedule, Server, State, at
from fedcso.core.errors import require_fraction, require_positive
from fedcso.core.oracle import Oracle
from fedcso.core.problem import Batch
from fedcso.core.tree import Tree, add_scaled, subtract, zeros_like


@dataclass(frozen=True)
class AccFCSGM(Algorithm):
    """FCSG-M accelerated by variance reduction: gradients at two points on the same samples (Algorithm 2).

    learning_rate is α, momentum is β (the weight of the NEW gradient).
    """

    learning_rate: Schedule = 0.01
    momentum: Schedule = 0.1

    durable: ClassVar[bool] = False
    steady: ClassVar[bool] = True
    use_when: ClassVar[str] = "if samples are more expensive than computation: the best rate in theory"

    def __post_init__(self) -> None:
        require_positive("learning_rate", self.learning_rate)
        require_fraction("momentum", self.momentum)

    def init(self, x: Tree) -> Server:
        """Return x and u; u = 0 is never used, because step 0 sets u."""
        return Server({"x": x, "u": zeros_like(x)})

    def receive(self, shared: dict[str, Tree], local: dict[str, Tree] | None) -> State:
        """Take the server's x as the previous iterate if the client has none."""
        return State(shared, local or {"previous": shared["x"]})

    def step(self, state: State, oracle: Oracle, batch: Batch, t: int) -> State:
        """Perform lines 12–14 (line 2 at t = 0), then lines 5–11 of the next iteration."""
        x, u = state.shared["x"], state.shared["u"]
        gradient = oracle.grad(x, batch)
        if t == 0:
            u = gradient
        else:
            correction = subtract(u, oracle.grad(state.local["previous"], batch))
            u = add_scaled(gradient, correction, 1 - at(self.momentum, t))
        return State({"x": oracle.move(x, u, at(self.learning_rate, t)), "u": u}, {"previous": x})
