"""Thousands of clients of which few are at work: time and memory of a round.

    python -m benchmarks.many_clients

N = 16 … 10,000 clients with ragged shares of one memory-mapped array of MNIST-shaped pictures; 1 % of them, at least
16, take part in a round of 5 steps × batch 32 of the small MNIST network (185,000 parameters). FCSG-M keeps nothing at
home; SCAFFOLD keeps a control variate for every client that has ever taken part, as large as the model. Every line is
measured in a process of its own, because a process never gives its peak back.
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.results import keep
from benchmarks.timing import describe_machine
from fedcso.algorithms import FCSGM, Scaffold
from fedcso.core.algorithm import Algorithm
from fedcso.core.plan import Plan
from fedcso.core.task import Task
from fedcso.datasets.examples import Examples
from fedcso.datasets.rows import memory_mapped, share
from fedcso.engines import run
from fedcso.engines.loop import Progress
from fedcso.models.small_cnn import SmallCNN
from fedcso.problems import Classification

METHODS: dict[str, Algorithm] = {"FCSG-M": FCSGM(0.05, 0.1), "SCAFFOLD": Scaffold(0.05)}
NUMBERS, QUICK_NUMBERS = (16, 100, 1000, 3000, 5000, 10_000), (16, 10_000)
FEWEST, LOCAL_STEPS, BATCH, SHARE = 16, 5, 32, 40
ROUNDS, QUICK_ROUNDS = 8, 2


def clients_of(number: int, folder: Path) -> list[Examples]:
    """Shares of 1 … 79 pictures, by number in one array on disk."""
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 2 * SHARE, number)
    pictures = rng.integers(0, 256, (int(sizes.sum()), 1, 28, 28), dtype=np.uint8)
    inputs = memory_mapped(pictures, folder / "pictures.npy")
    del pictures
    whole = Examples(inputs, torch.from_numpy(rng.integers(0, 10, len(inputs))))
    return [share(whole, part) for part in torch.split(torch.arange(len(inputs)), sizes.tolist())]


class Pictures(Classification):
    """Bytes become numbers when a batch is used."""

    def losses(self, x: Any, xi: Examples) -> torch.Tensor:
        """As ever."""
        return super().losses(x, Examples(xi.inputs.float() / 255, xi.labels))


def measure(method: str, number: int, rounds: int) -> dict[str, float]:
    """One line, in this process: seconds a round, and by how much memory grew at its peak."""
    with tempfile.TemporaryDirectory() as folder:
        clients = clients_of(number, Path(folder))
        problem, plan = Pictures(SmallCNN), Plan(1, LOCAL_STEPS, BATCH, participation=min(FEWEST, number))
        run(METHODS[method], Task(problem, clients), plan, engine="threads")  # warms up
        before, moments = _private_bytes(), [time.perf_counter()]
        peak = before

        def on_round(progress: Progress) -> None:
            nonlocal peak
            moments.append(time.perf_counter())
            peak = max(peak, _private_bytes())

        participants = max(FEWEST, number // 100)
        plan = Plan(rounds, LOCAL_STEPS, BATCH, participation=participants, evaluate_every=rounds)
        run(METHODS[method], Task(problem, clients), plan, callbacks=[on_round], engine="threads")
    each = np.diff(moments)
    return {
        "clients": number,
        "participants": participants,
        "seconds": float(np.median(each)),
        "fastest": float(each.min()),
        "slowest": float(each.max()),
        "peak_bytes": _peak_bytes(),
        "grown_bytes": peak - before,
    }


def _status(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return 1024 * int(line.split()[1])
    return 0


def _private_bytes() -> int:
    """What the process holds in memory of its own, without files that are mapped."""
    return _status("RssAnon:")


def _peak_bytes() -> int:
    """The most that the process ever had in memory, mapped files included."""
    return _status("VmHWM:")


def main(quick: bool = False) -> None:
    describe_machine()
    rows = []
    print(f"\n  {'':10} {'clients':>8} {'at work':>8} {'a round':>10} {'per client':>11} {'peak':>9} {'grown':>9}")
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
                f"  {method:10} {row['clients']:8,} {row['participants']:8} {row['seconds']:8.2f} s "
                f"{1e3 * row['seconds'] / row['participants']:8.1f} ms {row['peak_bytes'] / 1e6:6.0f} MB "
                f"{row['grown_bytes'] / 1e6:6.0f} MB",
                flush=True,
            )
    keep("many_clients", rows=rows, parameters=sum(p.numel() for p in SmallCNN().parameters()))


if __name__ == "__main__":
    if len(sys.argv) == 4:
        print(json.dumps(measure(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
    else:
        main("--quick" in sys.argv)
