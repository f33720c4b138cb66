"""A thread pool over clients, for networks: each client computes on one thread."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from fedcso.core.algorithm import Algorithm
from fedcso.core.errors import require_count
from fedcso.core.workers import pool
from fedcso.engines.engine import Engine, only_one
from fedcso.engines.job import Job
from fedcso.engines.loop import Rounds
from fedcso.engines.reference import ClientByClient


def engine(workers: int | None = None) -> Engine:
    """Return an engine that runs this many clients at a time; one per core by default."""
    if workers is not None:
        require_count("workers", workers)

    @contextmanager
    def start(algorithms: Sequence[Algorithm], job: Job, seeds: Sequence[int]) -> Iterator[Rounds]:
        with pool(workers) as threads:
            yield ClientByClient(only_one(algorithms, job, seeds), threads.map)

    return Engine(start)


ENGINE = engine()
