"""All clients in one process, the default: `stacked` for small models, `threads` for networks."""

from collections.abc import Sequence
from contextlib import AbstractContextManager

from fedcso.core.algorithm import Algorithm
from fedcso.core.streams import stream
from fedcso.core.tree import numel
from fedcso.engines import stacked, threads
from fedcso.engines.engine import Engine
from fedcso.engines.job import Job
from fedcso.engines.loop import Rounds

STACK_AT_MOST = 20_000
"""The largest number of parameters for which stacking is faster than threads."""


def choose(job: Job) -> Engine:
    """Return `stacked` if the model is small and can be stacked, else `threads`."""
    small = numel(job.problem.init(stream(0, 0, 0))) <= STACK_AT_MOST
    return stacked.ENGINE if small and stacked.possible(job) else threads.ENGINE


def _start(algorithms: Sequence[Algorithm], job: Job, seeds: Sequence[int]) -> AbstractContextManager[Rounds]:
    return choose(job).start(algorithms, job, seeds)


ENGINE = Engine(_start, runs_grids=lambda job: choose(job).runs_grids(job))
