"""The ways to federated few-shot learning that are compared: problem, method, and what clients do in a round."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from fedcso.algorithms import FCSG, FCSGM, FedAdam, FedAvg, PerFedAvg, Reptile
from fedcso.core.algorithm import Algorithm
from fedcso.core.plan import Plan
from fedcso.core.schedules import Cosine
from fedcso.core.task import Task


@dataclass(frozen=True)
class Way:
    """A way to few-shot learning; the rate is what its trials choose."""

    problem: str
    method: Callable[[float], Algorithm]
    options: Mapping[str, Any] = field(default_factory=dict)
    """The problem's options that differ from those of all ways."""
    local_steps: int = 1
    outer_batch: int = 1
    """Tasks (or images) of a client in a step."""
    alone: bool = False
    """True if one client trains without the others, on as many tasks per step as they would all see together."""

    def plan(self, steps: int, shots: int, clients: int, evaluations: int = 1) -> Plan:
        """Return the plan of a run that evaluates so many times."""
        rounds = max(1, steps // self.local_steps)
        return Plan(
            rounds,
            self.local_steps,
            self.outer_batch * (clients if self.alone else 1),
            shots,
            evaluate_every=max(1, rounds // evaluations),
        )

    def who_trains(self, task: Task) -> Task:
        """Return the task with the clients that train."""
        if not self.alone:
            return task
        return replace(task, clients=task.clients[:1], test=task.test._replace(clients=task.test.clients[:1]))


def adam_at_the_server(rate: float) -> Algorithm:
    """Return Adam at the server on the mean of the clients' meta-gradients, with a rate that falls to nothing."""
    return FedAdam(FCSG(1.0), server_rate=Cosine(rate), adaptivity=1e-6)


def _falling_momentum(rate: float) -> Algorithm:
    return FCSGM(Cosine(rate), momentum=0.1)


def _falling(rate: float) -> Algorithm:
    return FedAvg(Cosine(rate))


WAYS = {
    "MAML with Adam at the server": Way("maml", adam_at_the_server),
    "MAML with FCSG-M": Way("maml", _falling_momentum),
    "first-order MAML with Adam at the server": Way("maml", adam_at_the_server, {"first_order": True}),
    "Per-FedAvg, one task per client": Way("maml", PerFedAvg, {"tasks": 1}, local_steps=10),
    "Reptile, one task per round": Way("maml", Reptile, {"one_task_per_round": True, "inner_steps": 0}, local_steps=10),
    "classifier of all characters, nearest centroid": Way(
        "pretraining", _falling, {"centroids": True}, local_steps=10, outer_batch=80
    ),
    "MAML with Adam, one client alone": Way("maml", adam_at_the_server, alone=True),
}
"""All ways by name; the first ones are federated meta-learning."""

LONG = tuple(WAYS)[:3]
"""The ways of which the best, on validation tasks, is trained for longer."""

RATES = {
    "MAML with FCSG-M": (0.3, 1.0, 3.0, 10.0),
    "Per-FedAvg, one task per client": (0.1, 0.5, 2.0, 5.0),
    "Reptile, one task per round": (0.1, 0.3, 1.0, 3.0),
    "classifier of all characters, nearest centroid": (0.3, 1.0, 3.0, 10.0),
}
ADAM_RATES = (0.001, 0.003, 0.01, 0.03)


def rates(way: str) -> tuple[float, ...]:
    """Return the rates that are tried; those of Adam by default."""
    return RATES.get(way, ADAM_RATES)
