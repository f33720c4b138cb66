"""A pool of threads over clients, for networks: each client computes on a single thread of its own."""

from collections.abc import Sequence
from typing import Any

from fedcso.algorithm import Algorithm
from fedcso.engine import Job, OnRound, Snapshot, drive, only
from fedcso.engines.reference import ClientByClient
from fedcso.errors import require_count
from fedcso.estimator import Estimator, plain
from fedcso.plan import Plan
from fedcso.problem import Problem
from fedcso.trace import Trace
from fedcso.workers import pool


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
