"""MIME: MimeLite with a control variate that removes the difference between clients' gradients.

    x ← Π_X( x − α ( β ( G(x) − G(x_start) + c ) + (1 − β) M ) ),    both G on the same samples, c and M fixed
    c = mean_n of the gradients at x_start,        after the move:  M ← β c + (1 − β) M

c is the mean over clients at the x_start of the SAME update, so an update takes two exchanges, here two rounds:

    measure:   the server sends x;           clients stay there, and send the mean of G(x) over q batches
    move:      the server sends x, c and M;  clients take q local steps, and send x

So `rounds` should be even, and half of them move x. Using the c of the update before would save the first exchange, but
that is another method. If only some clients take part, those of the two rounds differ. The paper makes c of full
gradients, which nested problems do not have. M = c in the first update (0 in the paper). The server keeps M while
clients measure; clients keep nothing. One gradient per measuring step, two per moving step.

Reference: Karimireddy et al., Mime: Mimicking Centralized Stochastic Algorithms in Federated Learning, 2020 (Mime with
momentum; β here is 1 − β there). What is exchanged and in which order is as in FedJAX, which measures c with the
clients that move afterwards.
"""

from dataclasses import dataclass
from typing import ClassVar

from fedcso.algorithms.server_optimiser import require_constant
from fedcso.core.algorithm import Algorithm, Schedule, Server, State, at
from fedcso.core.errors import require_fraction, require_positive
from fedcso.core.oracle import Oracle
from fedcso.core.problem import Batch
from fedcso.core.tree import Tree, Weight, add_scaled, mix, subtract, zeros_like


@dataclass(frozen=True)
class MIME(Algorithm):
    """Momentum and a control variate of the server's, which are measured in a round of their own.

    learning_rate is α, global_momentum is β (the weight of the NEW gradient).
    """

    learning_rate: Schedule = 0.01
    global_momentum: Weight = 0.1

    use_when: ClassVar[str] = "as MimeLite, if clients differ much and a second exchange per update is affordable"

    def __post_init__(self) -> None:
        require_positive("learning_rate", self.learning_rate)
        require_constant("global_momentum", self.global_momentum)
        require_fraction("global_momentum", self.global_momentum)

    def receive(self, shared: dict[str, Tree], local: dict[str, Tree] | None) -> State:
        """Prepare to sum gradients if the server sends x alone, or to move from x if it sends c as well."""
        x = shared["x"]
        return State(shared, {"start": x} if "c" in shared else {"sum": zeros_like(x)})

    def step(self, state: State, oracle: Oracle, batch: Batch, t: int) -> State:
        """Add a gradient at x, or move along the corrected one with the server's momentum."""
        x = state.shared["x"]
        gradient = oracle.grad(x, batch)
        if "c" not in state.shared:
            return State(state.shared, {"sum": add_scaled(state.local["sum"], gradient, 1.0)})
        correction = subtract(state.shared["c"], oracle.grad(state.local["start"], batch))
        direction = mix(state.shared["u"], add_scaled(gradient, correction, 1.0), self.global_momentum)
        return State(state.shared | {"x": oracle.move(x, direction, at(self.learning_rate, t))}, state.local)

    def send(self, state: State, steps: range) -> State:
        """Send the mean gradient after measuring, x after moving."""
        if "c" in state.shared:
            return State({"x": state.shared["x"]})
        total = state.local["sum"]
        return State({"c": add_scaled(zeros_like(total), total, 1 / len(steps))})

    def aggregate(self, server: Server, mean: dict[str, Tree], fraction: Weight) -> Server:
        """Send c and M with the same x after measuring; renew M after moving."""
        shared = server.shared
        if "c" not in shared:
            return Server({"x": shared["x"], "u": server.kept.get("u", mean["c"]), "c": mean["c"]})
        return Server({"x": mean["x"]}, {"u": mix(shared["u"], shared["c"], self.global_momentum)})
