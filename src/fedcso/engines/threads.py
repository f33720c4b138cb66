"""A pool of threads over clients, for networks: each client computes on a single thread of its own.

On a CPU this beats letting torch split every small operator among cores.
"""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch

from fedcso.algorithm import Algorithm
from fedcso.engine import Job, OnRound, Snapshot, drive, only
from fedcso.engines.reference import ClientByClient
from fedcso.errors import require_count
from fedcso.estimator import Estimator, plain
from fedcso.plan import Plan
from fedcso.problem import Problem
from fedcso.trace import Trace


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
    workers = len(os.sched_getaffinity(0)) if workers is None else workers
    require_count("workers", workers)
    job = Job(algorithm, problem, clients, plan, seed, test, estimator, device)
    with ThreadPoolExecutor(workers, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        return only(drive(ClientByClient(job, pool.map), on_round, start))
