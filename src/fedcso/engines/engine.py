"""What an engine is: a way to play the rounds of a run, or of several in step with each other."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from fedcso.core.algorithm import Algorithm
from fedcso.core.errors import FedcsoError
from fedcso.engines.job import Job
from fedcso.engines.loop import Rounds

Start = Callable[[Sequence[Algorithm], Job, Sequence[int]], AbstractContextManager[Rounds]]
"""(settings of one method, a job, seeds) to the rounds of all of them; what they hold is released at the end."""


def _never(job: Job) -> bool:
    return False


@dataclass(frozen=True)
class Engine:
    """Where clients live, and how their local steps are carried out."""

    start: Start
    plays_grids: Callable[[Job], bool] = _never
    """True if several settings and seeds of such a job can be played together."""
    over_ranks: bool = False
    """True if it wants several processes, started by torchrun."""


def only_one(algorithms: Sequence[Algorithm], job: Job, seeds: Sequence[int]) -> Job:
    """Return the job of an engine that plays one run at a time."""
    if len(algorithms) > 1 or len(seeds) > 1:
        raise FedcsoError("this engine plays one setting and one seed at a time; use the engine stacked for a grid")
    return job
