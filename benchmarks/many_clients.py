"""Measure time and memory of starting, a round and evaluating with up to a million clients, of which few take part.

    python -m benchmarks.many_clients

N = 16 … 1,000,000 clients have parts of different sizes of one memory-mapped array of MNIST-shaped pictures; parts of
different clients overlap. 1 % of them, but at least 16 and at most 100, take part in a round of 5 steps of batch 32 of
the small MNIST network (185,000 parameters). FCSG-M has no local state; SCAFFOLD has a control variate as large as the
model for every client that has taken part. Starting is making the clients, the digest of their data and the checks of
a run; evaluating is F and ∇F of a nested quadratic with as many clients. Every line is measured in a new process,
because the peak memory of a process never decreases. Other processes make rounds longer, but hardly their CPU time.
"""

import json
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.results import save
from benchmarks.timing import describe_machine
from fedcso.algorithms import FCSGM, Scaffold
from fedcso.core.algorithm import Algorithm
from fedcso.core.crowd import Crowd
from fedcso.core.plan import Plan
from fedcso.core.task import Task
from fedcso.datasets.examples import Examples
from fedcso.datasets.rows import memory_mapped, share
from fedcso.engines import run
from fedcso.engines.job import Job
from fedcso.engines.loop import Progress
from fedcso.models.small_cnn import SmallCNN
from fedcso.problems import PROBLEMS, Classification

METHODS: dict[str, Algorithm] = {"FCSG-M": FCSGM(0.05, 0.1), "SCAFFOLD": Scaffold(0.05)}
NUMBERS, QUICK_NUMBERS = (16, 1000, 10_000, 100_000, 1_000_000), (16, 10_000, 1_000_000)
FEWEST, MOST, LOCAL_STEPS, BATCH, SHARE, PICTURES = 16, 100, 5, 32, 40, 40_000
ROUNDS, QUICK_ROUNDS = 8, 2


def pictures_in(folder: Path) -> Examples:
    """Return labelled pictures in an array on disk."""
    rng = np.random.default_rng(0)
    pictures = rng.integers(0, 256, (PICTURES, 1, 28, 28), dtype=np.uint8)
    inputs = memory_mapped(pictures, folder / "pictures.npy")
    return Examples(inputs, torch.from_numpy(rng.integers(0, 10, PICTURES)))


def clients_of(pictures: Examples, number: int) -> Crowd[Examples]:
    """Return clients with 1 … 79 of the pictures each, as indices."""

    def make(client: int) -> Examples:
        size, first = 1 + client * 37 % (2 * SHARE - 1), client * SHARE % (PICTURES - 2 * SHARE)
        return share(pictures, torch.arange(first, first + size))

    return Crowd(number, make)


class Pictures(Classification):
    """Classification of pictures stored as bytes, which are converted to floats in each batch."""

    def losses(self, x: Any, xi: Examples) -> torch.Tensor:
        """Return the losses."""
        return super().losses(x, Examples(xi.inputs.float() / 255, xi.labels))


def measure(method: str, number: int, rounds: int) -> dict[str, float]:
    """Measure one line in this process: seconds per round, peak memory, and growth of memory."""
    with tempfile.TemporaryDirectory() as folder:
        pictures, problem, plan = pictures_in(Path(folder)), Pictures(SmallCNN), Plan(1, LOCAL_STEPS, BATCH)
        run(METHODS[method], Task(problem, clients_of(pictures, FEWEST)), plan, engine="threads")  # warm-up
        participants = min(MOST, max(FEWEST, number // 100))
        plan = replace(plan, rounds=rounds, participation=participants, evaluate_every=rounds)
        started = time.perf_counter()
        task = Task(problem, clients_of(pictures, number))
        Job(METHODS[method], task, plan)
        task.digest()
        before, moments, work = _private_bytes(), [time.perf_counter()], [time.process_time()]
        peak = before

        def on_round(progress: Progress) -> None:
            nonlocal peak
            moments.append(time.perf_counter())
            work.append(time.process_time())
            peak = max(peak, _private_bytes())

        run(METHODS[method], task, plan, callbacks=[on_round], engine="threads")
    each = np.diff(moments)
    return {
        "clients": number,
        "participants": participants,
        "start": moments[0] - started,
        "evaluate": _seconds_to_evaluate(number),
        "seconds": float(np.median(each)),
        "fastest": float(each.min()),
        "slowest": float(each.max()),
        "cpu_seconds": float(np.median(np.diff(work))),
        "peak_bytes": _peak_bytes(),
        "grown_bytes": peak - before,
    }


def _seconds_to_evaluate(number: int) -> float:
    """Return the seconds that F and ∇F of a nested quadratic take."""
    job = Job(METHODS["FCSG-M"], PROBLEMS["nested_quadratic"](clients=number), Plan())
    job.evaluate([job.start()])
    started = time.perf_counter()
    job.evaluate([job.start()])
    return time.perf_counter() - started


def _status(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return 1024 * int(line.split()[1])
    return 0


def _private_bytes() -> int:
    """Return the private memory of the process, without mapped files."""
    return _status("RssAnon:")


def _peak_bytes() -> int:
    """Return the peak memory of the process, including mapped files."""
    return _status("VmHWM:")


def main(quick: bool = False) -> None:
    describe_machine()
    rows = []
    titles = f"{'clients':>9} {'active':>7} {'start':>7} {'F':>6} {'per round':>10} {'per client':>11}"
    print(f"\n  {'':10} {titles} {'CPU':>10} {'peak':>9} {'grown':>9}")
    for method in METHODS:
        for number in QUICK_NUMBERS if quick else NUMBERS:
            arguments = [method, str(number), str(QUICK_ROUNDS if quick else ROUNDS)]
            answer = subprocess.run(
                [sys.executable, "-m", "benchmarks.many_clients", *arguments],
                capture_output=True,
                text=True,
                check=True,
            )
            row = json.loads(answer.stdout)
            rows.append({"method": method, **row})
            print(
                f"  {method:10} {row['clients']:9,} {row['participants']:7} {row['start']:5.2f} s "
                f"{1e3 * row['evaluate']:3.0f} ms {row['seconds']:8.2f} s "
                f"{1e3 * row['seconds'] / row['participants']:8.1f} ms "
                f"{1e3 * row['cpu_seconds'] / row['participants']:7.1f} ms {row['peak_bytes'] / 1e6:6.0f} MB "
                f"{row['grown_bytes'] / 1e6:6.0f} MB",
                flush=True,
            )
    save("many_clients", rows=rows, parameters=sum(p.numel() for p in SmallCNN().parameters()))


if __name__ == "__main__":
    if len(sys.argv) == 4:
        print(json.dumps(measure(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
    else:
        main("--quick" in sys.argv)
