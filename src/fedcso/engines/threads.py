"""A pool of threads over clients, for networks: each client computes on a single thread of its own."""

from collections.abc import Sequence
from typing import Any

from fedcso.core.algorithm import Algorithm
from fedcso.core.errors import require_count
from fedcso.core.estimator import Estimator, plain
from fedcso.core.plan import Plan
from fedcso.core.problem import Problem
from fedcso.core.trace import Trace
from fedcso.core.workers import pool
from fedcso.engines.job import Job
from fedcso.engines.loop import OnRound, drive, only
from fedcso.engines.reference import ClientByClient
from fedcso.engines.snapshot import Snapshot


def run(
    algorithm: Algorithm,
    problem: Problem,
    clients: Sequence[Any],
    plan: Plan,
    seed: int = 0,
    *,
    test: Any = None,
    estimator: Estimator = plain,
    device: str = "cpu",
    on_round: OnRound | None = None,
    start: Snapshot | None = None,
    workers: int | None = None,
) -> Trace:
    """Run one method with as many clients at work at once as there are workers (default: cores)."""
    if workers is not None:
        require_count("workers", workers)
    job = Job(algorithm, problem, clients, plan, seed, test, estimator, device)
    with pool(workers) as threads:
        return only(drive(ClientByClient(job, threads.map), on_round, start))
