"""MimeLite: momentum of the server's, which clients apply in every local step and do not change during a round.

    x ← Π_X( x − α ( β G(x) + (1 − β) M ) ),         G = (1/b) Σ_i ∇F̂(·; ξ_i, B_i) on the step's samples, M fixed
    after the round:   h_n = mean of G(x_start) over the round's q batches,    M ← β mean_n h_n + (1 − β) M

The gradients that enter M are all taken at x_start, so M is a momentum of the server's path, without the clients'
drift. The paper takes h_n as the full gradient at x_start, which nested problems do not have. M is the client's first
gradient in step 0 and until the end of that round (0 in the paper). Clients send x and β h_n + (1 − β) M, whose mean is
the next M; nothing is kept. Two gradients per step. With β = 1 it is FCSG, with q = 1 FCSG-M.

Reference: Karimireddy et al., Mime: Mimicking Centralized Stochastic Algorithms in Federated Learning, 2020
(MimeLite with momentum; β here is 1 − β there). TensorFlow Federated's version takes h_n at x_start, too.
"""

from dataclasses import dataclass
from typing import ClassVar

from fedcso.core.algorithm import Algorithm, Schedule, Server, State, at
from fedcso.core.errors import require_fraction, require_positive
from fedcso.core.oracle import Oracle
from fedcso.core.problem import Batch
from fedcso.core.tree import Tree, add_scaled, mix, zeros_like


@dataclass(frozen=True)
class MimeLite(Algorithm):
    """Momentum of the server's, applied in every local step and fixed during a round.

    learning_rate is α, momentum is β (the weight of the NEW gradient).
    """

    learning_rate: Schedule = 0.01
    momentum: Schedule = 0.1

    steady: ClassVar[bool] = True
    use_when: ClassVar[str] = "if unlike clients drift with momentum of their own, and states can't stay with them"

    def __post_init__(self) -> None:
        require_positive("learning_rate", self.learning_rate)
        require_fraction("momentum", self.momentum)

    def init(self, x: Tree) -> Server:
        """Return x and M as u; u = 0 is never used, because step 0 sets it."""
        return Server({"x": x, "u": zeros_like(x)})

    def receive(self, shared: dict[str, Tree], local: dict[str, Tree] | None) -> State:
        """Hold x_start, and sum gradients there from 0."""
        return State(shared, {"start": shared["x"], "sum": zeros_like(shared["x"])})

    def step(self, state: State, oracle: Oracle, batch: Batch, t: int) -> State:
        """Move with the server's momentum, and add a gradient at x_start."""
        x, u, start = state.shared["x"], state.shared["u"], state.local["start"]
        gradient = oracle.grad(x, batch)
        u = gradient if t == 0 else u
        total = add_scaled(state.local["sum"], oracle.grad(start, batch), 1.0)
        x = oracle.move(x, mix(u, gradient, at(self.momentum, t)), at(self.learning_rate, t))
        return State({"x": x, "u": u}, {"start": start, "sum": total})

    def send(self, state: State, steps: range) -> State:
        """Send the client's share of the next M."""
        at_start = add_scaled(zeros_like(state.local["sum"]), state.local["sum"], 1 / len(steps))
        u = mix(state.shared["u"], at_start, at(self.momentum, steps[-1]))
        return State({"x": state.shared["x"], "u": u})
