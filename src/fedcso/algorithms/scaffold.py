"""SCAFFOLD: local steps with control variates, which correct the drift of heterogeneous clients.

    x ← Π_X( x − α (g − c_n + c) ),                     g = (1/b) Σ_i ∇F̂(x; ξ_i, B_i)
    after the round:   c_n⁺ = c_n − c + (x_start − x_end) / (q α)      and   Δc_n = c_n⁺ − c_n
    server:            x ← mean x,   c ← c + (|S|/N) mean Δc           over the clients S of the round

Clients send x and c + Δc_n, whose average is c + mean Δc, and keep c_n; the server sends x and c. c_n = c = 0 at first.
With a schedule, q α is the sum of the round's step sizes.

Reference: Karimireddy et al., SCAFFOLD: Stochastic Controlled Averaging for Federated Learning, ICML
2020 (option II).
"""

from dataclasses import dataclass
from typing import ClassVar

from fedcso.core.algorithm import Algorithm, Schedule, Server, State, at
from fedcso.core.errors import require_positive
from fedcso.core.oracle import Oracle
from fedcso.core.problem import Batch
from fedcso.core.tree import Tree, Weight, add_scaled, mix, subtract, zeros_like


@dataclass(frozen=True)
class Scaffold(Algorithm):
    """Stochastic controlled averaging: control variates correct the drift of heterogeneous clients.

    learning_rate is α.
    """

    learning_rate: Schedule = 0.01

    use_when: ClassVar[str] = "if nothing is nested and clients differ much"

    def __post_init__(self) -> None:
        require_positive("learning_rate", self.learning_rate)

    def init(self, x: Tree) -> Server:
        """Return x and c = 0."""
        return Server({"x": x, "c": zeros_like(x)})

    def receive(self, shared: dict[str, Tree], local: dict[str, Tree] | None) -> State:
        """Start from c_n = 0 if the client has none, and remember x_start for the end of the round."""
        control = local["c_n"] if local else zeros_like(shared["c"])
        return State(shared, {"c_n": control, "start": shared["x"]})

    def step(self, state: State, oracle: Oracle, batch: Batch, t: int) -> State:
        """Take one corrected SGD step."""
        x, c = state.shared["x"], state.shared["c"]
        direction = add_scaled(oracle.grad(x, batch), subtract(c, state.local["c_n"]), 1.0)
        return State({"x": oracle.move(x, direction, at(self.learning_rate, t)), "c": c}, state.local)

    def send(self, state: State, steps: range) -> State:
        """Update c_n and send its change."""
        x, c = state.shared["x"], state.shared["c"]
        c_n, start = state.local["c_n"], state.local["start"]
        total_rate = sum(at(self.learning_rate, t) for t in steps)
        renewed = add_scaled(subtract(c_n, c), subtract(start, x), 1 / total_rate)
        changed = add_scaled(c, subtract(renewed, c_n), 1.0)
        return State({"x": x, "c": changed}, {"c_n": renewed})

    def aggregate(self, server: Server, mean: dict[str, Tree], fraction: Weight) -> Server:
        """Add to c the mean change, scaled by the fraction of clients that took part."""
        return Server({"x": mean["x"], "c": mix(server.shared["c"], mean["c"], fraction)}, server.kept)
