"""The complete, checked specification of one run."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from fedcso.core.algorithm import Algorithm
from fedcso.core.codec import Codec, full
from fedcso.core.errors import FedcsoError, InvalidValue, require, require_count
from fedcso.core.estimator import Estimator
from fedcso.core.evaluation import evaluate
from fedcso.core.plan import Plan
from fedcso.core.problem import Problem
from fedcso.core.streams import OUTPUT, START, stream
from fedcso.core.task import Task
from fedcso.core.topology import mixing_matrix
from fedcso.core.tree import Tree, to_device
from fedcso.engines.work import Work
from fedcso.estimators.plain import plain


@dataclass(frozen=True)
class Job:
    """The complete specification of one run: method, task, plan, seed, estimator, device and codec."""

    algorithm: Algorithm
    task: Task
    plan: Plan
    seed: int = 0
    estimator: Estimator = plain
    device: str = "cpu"
    codec: Codec = full
    work: Work = field(init=False, repr=False)
    """The part of the specification that every client needs."""
    mixing: torch.Tensor | None = field(init=False, repr=False, compare=False)
    """W of the topology over which clients average; None if they average at a server."""

    def __post_init__(self) -> None:
        require_count("seed", self.seed, least=0)
        require("clients", len(self.clients), lambda n: n >= 1, "at least one client's data")
        able = len(self.able)
        require("clients", able, lambda n: n >= 1, "at least one client with training data")
        if isinstance(self.plan.participation, int) and self.plan.participation > able:
            raise InvalidValue(
                "participation", self.plan.participation, f"at most {able}, the number of clients that train"
            )
        topology = self.plan.topology or self.algorithm.topology
        object.__setattr__(self, "mixing", mixing_matrix(topology, able))
        if self.mixing is not None:
            self._require_gossip(topology)
        self.algorithm.check(self.plan, self.problem, self.task.seen)
        if self.plan.epsilon and self.problem.exact is None:
            name = type(self.problem).__name__
            raise InvalidValue("epsilon", self.plan.epsilon, f"0: ∇F of {name} is not known exactly")
        if self.plan.patience and not self.task.validates:
            raise InvalidValue("patience", self.plan.patience, "0: there are no validation data to stop by")
        if self.task.start is not None:
            self.start()  # raises if the given weights do not fit
        work = Work(self.algorithm, self.problem, self.plan, self.seed, self.estimator, self.codec, self.device)
        object.__setattr__(self, "work", work)
        object.__setattr__(self, "algorithm", work.algorithm)

    def _require_gossip(self, topology: str) -> None:
        """Raise unless all clients take part in all rounds with the weights of the topology, and send everything."""
        plan, without_server = self.plan, f"over the topology {topology}"
        if plan.participants(self.seed, 0, len(self.able)) != list(range(len(self.able))):
            raise InvalidValue("participation", plan.participation, f"1.0 {without_server}: all clients are neighbours")
        if plan.weighs_by_size:
            raise InvalidValue("weights", plan.weights, f"uniform {without_server}, which has its own weights")
        if plan.on_nonfinite == "drop":
            raise InvalidValue("on_nonfinite", plan.on_nonfinite, f"stop {without_server}: all clients are neighbours")
        if self.codec != full:
            raise FedcsoError(f"u is sent in full {without_server}: leave out send_u")
        if self.algorithm.pooled:
            method = type(self.algorithm).__name__
            raise FedcsoError(f"{method} needs a server, which collects scores of all clients: leave out topology")

    @property
    def problem(self) -> Problem:
        """The problem to be minimised."""
        return self.task.problem

    @property
    def clients(self) -> Sequence[Any]:
        """The training data of each client."""
        return self.task.clients

    @property
    def able(self) -> Sequence[int]:
        """The clients that have training data."""
        return self.task.able

    def participants(self, round: int) -> list[int]:
        """Return the clients that take part in a round, in ascending order."""
        return [self.able[place] for place in self.plan.participants(self.seed, round, len(self.able))]

    def weights(self, clients: Sequence[int]) -> list[float]:
        """Return the weights of the given clients, not normalised."""
        if not self.plan.weighs_by_size:
            return [1.0] * len(clients)
        return [self.plan.weight(self.problem, self.clients[n]) for n in clients]

    def weights_of_seen(self) -> list[float]:
        """Return the weights of the clients that models are evaluated for."""
        return [self.plan.weight(self.problem, data) for data in self.task.seen]

    def evaluate(self, models: Sequence[Tree]) -> list[dict[str, float]]:
        """Return the metrics of each model."""
        return evaluate(self.task, models, self.weights_of_seen())

    def start(self) -> Tree:
        """Return the starting point x_0, projected onto X and moved to the device."""
        return to_device(self.task.starting_point(stream(self.seed, START, 0)), self.device)

    def output_step(self) -> int:
        """Return the uniformly random step 0 ≤ t < T after which the theorems' output x̄_t is taken."""
        return int(torch.randint(self.plan.total_steps, (), generator=stream(self.seed, OUTPUT, 0)))
