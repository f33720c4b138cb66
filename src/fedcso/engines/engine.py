"""The type of an engine: a way to run the rounds of one run, or of several runs together."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from fedcso.core.algorithm import Algorithm
from fedcso.core.errors import FedcsoError
from fedcso.engines.job import Job
from fedcso.engines.loop import Rounds

Start = Callable[[Sequence[Algorithm], Job, Sequence[int]], AbstractContextManager[Rounds]]
"""(settings of one method, job, seeds) → a context manager for the rounds of all these runs."""


def _never(job: Job) -> bool:
    return False


@dataclass(frozen=True)
class Engine:
    """Where clients are and how their local steps are executed."""

    start: Start
    runs_grids: Callable[[Job], bool] = _never
    """Whether several settings and seeds of a job can run together."""
    over_ranks: bool = False
    """True if the engine needs several processes, started by torchrun."""


def only_one(algorithms: Sequence[Algorithm], job: Job, seeds: Sequence[int]) -> Job:
    """Return the job of an engine that runs one setting and one seed; raise if there are more."""
    if len(algorithms) > 1 or len(seeds) > 1:
        raise FedcsoError("this engine runs one setting and one seed at a time; use the engine stacked for a grid")
    return job
