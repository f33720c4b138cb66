"""Settle the estimator of a run before it starts: `--estimator auto` becomes the name of one.

Everything after this, a resumed run and real sites included, knows the name only. The file `estimator.txt` of a run
folder says why it was chosen.
"""

from dataclasses import replace
from typing import NamedTuple

from fedcso.core.streams import START, stream
from fedcso.core.task import Task
from fedcso.estimators import AUTO
from fedcso.runs.config import RunConfig
from fedcso.theory.choice import Choice, choose_estimator

FILE = "estimator.txt"


class Settled(NamedTuple):
    """A configuration with an estimator's name, and why that one was chosen; nothing if the user chose it."""

    config: RunConfig
    why: str = ""

    def files(self) -> dict[str, bytes]:
        """Return what the run folder keeps, by name."""
        return {FILE: f"{self.why}\n".encode()} if self.why else {}

    def notes(self) -> list[str]:
        """Return why, as a note."""
        return [self.why] if self.why else []


def settle_estimator(config: RunConfig, task: Task) -> Settled:
    """Choose the estimator, if the configuration leaves it open."""
    if config.estimator != AUTO:
        return Settled(config)
    choice = _choose(config, task)
    return Settled(replace(config, estimator=choice.estimator), f"estimator {AUTO}: {choice}")


def _choose(config: RunConfig, task: Task) -> Choice:
    tracking = [name for name, (algorithm, _) in config.built().items() if algorithm.tracks]
    if tracking:
        return Choice("plain", f"{tracking[0]} tracks the inner value and can't use another one")
    plan, seed = config.plan.for_task(task), config.seeds[0]
    able = [data for data in task.clients if task.problem.trains(data)]
    clients = [able[place] for place in plan.participants(seed, 0, len(able))]
    weights = [plan.weight(task.problem, data) for data in clients]
    x = task.starting_point(stream(seed, START, 0))
    return choose_estimator(task.problem, x, clients, plan, weights, seed)
