"""Reptile: the server moves towards what clients reach by ordinary gradient steps on their tasks.

    client:   x_n ← x_n − α ∇L_n(x_n; b samples),      q ≥ 2 times from x
    server:   x ← x + η_s mean_n (x_n − x)

Neither query sets nor second derivatives are needed. Models are adapted in evaluation only, so the problem must train
without adaptation: `personalised`, or `maml` with `inner_steps` = 0. All steps of a round belong to one task, so `maml`
also needs `one_task_per_round` (another task in every round) or `tasks` = 1 (one for the whole run). With η_s = 1 it is
FedAvg; with q = 1 it would be joint training on all tasks, without any effect of meta-learning. Clients send x and keep
nothing.

Reference: Nichol, Achiam, Schulman, On First-Order Meta-Learning Algorithms, 2018 (batched version). The rule is
written from memory; the paper lets η_s fall to 0 over the run, here it is constant.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from fedcso.algorithms.per_fedavg import require_adapting
from fedcso.core.algorithm import Algorithm, Schedule, Server, State, at
from fedcso.core.errors import FedcsoError, InvalidValue, require_positive
from fedcso.core.oracle import Oracle
from fedcso.core.plan import Plan
from fedcso.core.problem import Batch, Lasting, Problem
from fedcso.core.tree import Tree, Weight, mix


@dataclass(frozen=True)
class Reptile(Algorithm):
    """First-order meta-learning: the server moves towards the mean of what clients reach on their own tasks.

    learning_rate is α, server_rate is η_s.
    """

    learning_rate: Schedule = 0.01
    server_rate: float = 0.5
    use_when: ClassVar[str] = "for meta-learning without second derivatives or query sets"

    def __post_init__(self) -> None:
        require_positive("learning_rate", self.learning_rate)
        if callable(self.server_rate):
            raise InvalidValue("server_rate", self.server_rate, "a number: it is the same in all rounds")
        require_positive("server_rate", self.server_rate)

    def check(self, plan: Plan, problem: Problem, clients: Sequence[Any]) -> None:
        """Raise `FedcsoError` unless q ≥ 2, and a client's steps of a round minimise the ordinary loss of one task."""
        adapting = require_adapting("Reptile", problem)
        if adapting.inner_steps:
            raise InvalidValue(
                "inner_steps", adapting.inner_steps, "0 for Reptile, which adapts models in evaluation only"
            )
        for number, data in enumerate(clients):
            if adapting.task_lasts(data) < Lasting.ROUND:
                raise FedcsoError(
                    f"Reptile needs one task for all steps of a round, but client {number} draws a new one for each: "
                    "use maml with one_task_per_round, or personalised"
                )
        if plan.local_steps < 2:
            raise InvalidValue("local_steps", plan.local_steps, "at least 2 for Reptile: with 1 it is joint training")

    def step(self, state: State, oracle: Oracle, batch: Batch, t: int) -> State:
        """Take one SGD step."""
        x = state.shared["x"]
        return State({"x": oracle.move(x, oracle.grad(x, batch), at(self.learning_rate, t))})

    def aggregate(self, server: Server, mean: dict[str, Tree], fraction: Weight) -> Server:
        """Move from x towards the mean."""
        return Server({"x": mix(server.shared["x"], mean["x"], self.server_rate)}, server.kept)
