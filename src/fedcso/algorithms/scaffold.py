"""SCAFFOLD: local steps corrected by control variates against the drift of unlike clients.

    x ← Π_X( x − α (g − c_n + c) ),                     g = (1/b) Σ_i ∇F̂(x; ξ_i, B_i)
    after the round:   c_n⁺ = c_n − c + (x_start − x_end) / (q α)      and   Δc_n = c_n⁺ − c_n
    server:            x ← mean x,   c ← c + (|S|/N) mean Δc           over the clients S of the round

Sends x and c (upwards c + Δc_n, so that averaging gives c + mean Δc). Keeps c_n. c_n = c = 0 at first.
With a schedule q α stands for the sum of the round's step sizes.

Reference: Karimireddy et al., SCAFFOLD: Stochastic Controlled Averaging for Federated Learning, ICML
2020 (option II).
"""

from dataclasses import dataclass

from fedcso.core.algorithm import Algorithm, Schedule, Server, State, at
from fedcso.core.errors import require_positive
from fedcso.core.oracle import Oracle
from fedcso.core.problem import Batch
from fedcso.core.tree import Tree, Weight, add_scaled, mix, subtract, zeros_like


@dataclass(frozen=True)
class Scaffold(Algorithm):
    """Stochastic controlled averaging: control variates correct the drift of unlike clients.

    learning_rate is α.
    """

    learning_rate: Schedule = 0.01

    def __post_init__(self) -> None:
        require_positive("learning_rate", self.learning_rate)

    def init(self, x: Tree) -> Server:
        """c = 0."""
        return Server({"x": x, "c": zeros_like(x)})

    def receive(self, shared: dict[str, Tree], local: dict[str, Tree] | None) -> State:
        """c_n = 0 at first; x_start is remembered for the round's end."""
        control = local["c_n"] if local else zeros_like(shared["c"])
        return State(shared, {"c_n": control, "start": shared["x"]})

    def step(self, state: State, oracle: Oracle, batch: Batch, t: int) -> State:
        """One corrected SGD step."""
        x, c = state.shared["x"], state.shared["c"]
        direction = add_scaled(oracle.grad(x, batch), subtract(c, state.local["c_n"]), 1.0)
        return State({"x": oracle.move(x, direction, at(self.learning_rate, t)), "c": c}, state.local)

    def send(self, state: State, steps: range) -> State:
        """Renew c_n and report the change."""
        x, c = state.shared["x"], state.shared["c"]
        c_n, start = state.local["c_n"], state.local["start"]
        travelled = sum(at(self.learning_rate, t) for t in steps)
        renewed = add_scaled(subtract(c_n, c), subtract(start, x), 1 / travelled)
        reported = add_scaled(c, subtract(renewed, c_n), 1.0)
        return State({"x": x, "c": reported}, {"c_n": renewed})

    def aggregate(self, server: Server, mean: dict[str, Tree], fraction: Weight) -> Server:
        """c moves by the mean change, scaled by the share of clients that took part."""
        return Server({"x": mean["x"], "c": mix(server.shared["c"], mean["c"], fraction)}, server.kept)
