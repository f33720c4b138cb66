"""Fed-GLOMO: variance reduction at the server, by the same local steps from its last two models.

    client:    x_n  from x_k      by q local steps,      Δ_n  = x_k − x_n
               x'_n from x_{k−1}  by q local steps,      Δ'_n = x_{k−1} − x'_n       on the SAME samples
    server:    U ← Δ̄ + (1 − β) ( U − Δ̄' ),     x_{k+1} = x_k − U,                   U = Δ̄ in the first round

Both paths start with a gradient w of B outer samples and reduce its variance within the round, on the same samples:

    w ← G(x) + ( w − G(x_before) ),       x ← Π_X( x − α w )

Clients send both ends of their paths, and keep nothing; the server sends x_k and x_{k−1}, and keeps U. Four gradients
per step, two in the first of a round. With q = 1 it is Acc-FCSG-M (without projection), with β = 1 FedAvg with such
local steps. The server has no access to the problem, so x may leave X until the clients' next step; `remark` says so.

Reference: Das, Acharya, Hashemi, Sanghavi, Dhillon, Topcu, Faster Non-Convex Federated Learning via Global and Local
Momentum, UAI 2022, without its quantised messages. The server's rule follows a public port; that the local updates are
variance-reduced is in the paper's abstract, their exact form and the batch of the first w were not verified.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from fedcso.algorithms.server_optimiser import may_leave_the_set, require_constant
from fedcso.core.algorithm import Algorithm, Schedule, Server, State, at
from fedcso.core.errors import require_fraction, require_positive
from fedcso.core.oracle import Oracle
from fedcso.core.plan import Plan
from fedcso.core.problem import Batch, Problem
from fedcso.core.tree import Tree, Weight, add_scaled, leaves, subtract

PATHS: Sequence[str] = ("x", "previous")
"""What the server sends, and where the clients' two paths start and end: x_k and x_{k−1}."""


@dataclass(frozen=True)
class FedGLOMO(Algorithm):
    """Variance reduction at the server, by the same local steps from its last two models.

    learning_rate is α, global_momentum is β (the weight of the NEW Δ̄).
    """

    learning_rate: Schedule = 0.01
    global_momentum: Weight = 0.1

    use_when: ClassVar[str] = "if computation costs little, and different clients take part in each round"

    def __post_init__(self) -> None:
        require_positive("learning_rate", self.learning_rate)
        require_constant("global_momentum", self.global_momentum)
        require_fraction("global_momentum", self.global_momentum)

    def outer_batch(self, t: int, plan: Plan) -> int:
        """Return B at the start of a round, then b."""
        return plan.initial if t % plan.local_steps == 0 else plan.outer_batch

    def remark(self, problem: Problem) -> str:
        """Say that x may leave X at the server."""
        return may_leave_the_set(self, problem)

    def init(self, x: Tree) -> Server:
        """Return x twice, and an empty U, which the first round sets."""
        return Server(dict.fromkeys(PATHS, x), {"u": ()})

    def receive(self, shared: dict[str, Tree], local: dict[str, Tree] | None) -> State:
        """Start both paths."""
        return State(shared, {path: {} for path in PATHS})

    def step(self, state: State, oracle: Oracle, batch: Batch, t: int) -> State:
        """Take a step on both paths."""
        shared, local = {}, {}
        for path in PATHS:
            x, before = state.shared[path], state.local[path]
            w = oracle.grad(x, batch)
            if before:
                w = add_scaled(w, subtract(before["w"], oracle.grad(before["x"], batch)), 1.0)
            shared[path] = oracle.move(x, w, at(self.learning_rate, t))
            local[path] = {"w": w, "x": x}
        return State(shared, local)

    def send(self, state: State, steps: range) -> State:
        """Send both ends."""
        return State(state.shared)

    def aggregate(self, server: Server, mean: dict[str, Tree], fraction: Weight) -> Server:
        """Renew U by the mean changes of both paths, and step from x_k."""
        x, u = server.shared["x"], server.kept["u"]
        change, change_before = (subtract(server.shared[path], mean[path]) for path in PATHS)
        u = add_scaled(change, subtract(u, change_before), 1 - self.global_momentum) if leaves(u) else change
        return Server({"x": subtract(x, u), "previous": x}, {"u": u})
