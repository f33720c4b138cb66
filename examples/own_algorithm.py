"""A custom method: FCSG with heavy-ball momentum that stays at the client, so that only x is sent.

fedcso run invariant_logistic --algorithm examples/own_algorithm.py:HeavyBall FCSG-M --rounds 20
"""

from dataclasses import dataclass

from fedcso import Algorithm, Batch, Oracle, State
from fedcso.core.tree import Tree, add_scaled, zeros_like


@dataclass(frozen=True)
class HeavyBall(Algorithm):
    """u_{t+1} = β u_t + ∇F̂(x_t),  x_{t+1} = Π_X( x_t − α u_{t+1} ); x is averaged after q steps, u is not."""

    learning_rate: float = 0.005
    inertia: float = 0.5

    def receive(self, shared: dict[str, Tree], local: dict[str, Tree] | None) -> State:
        return State(shared, local or {"u": zeros_like(shared["x"])})

    def step(self, state: State, oracle: Oracle, batch: Batch, t: int) -> State:
        x, u = state.shared["x"], state.local["u"]
        u = add_scaled(oracle.grad(x, batch), u, self.inertia)
        return State({"x": oracle.move(x, u, self.learning_rate)}, {"u": u})
