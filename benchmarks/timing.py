"""Time alternatives in turn, several times, so that all run under the same conditions."""

import os
import platform
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode


@dataclass(frozen=True)
class Timing:
    """Seconds per unit of work, for each repetition."""

    name: str
    seconds: list[float]

    @property
    def median(self) -> float:
        """The median of the repetitions."""
        return statistics.median(self.seconds)

    @property
    def spread(self) -> tuple[float, float]:
        """The fastest and the slowest repetition."""
        return min(self.seconds), max(self.seconds)


MEASURES_ITSELF = 0.0
"""The units of work that measures itself: it returns the seconds per unit and does its own warm-up."""


Alternatives = dict[str, tuple[Callable[[], Any], float]]
"""Functions to time by name, each with the number of units of work that it does."""


def interleave(alternatives: Alternatives, repetitions: int = 5) -> dict[str, Timing]:
    """Time the alternatives in turn; the first turn is a warm-up and is not counted."""
    seconds: dict[str, list[float]] = {name: [] for name in alternatives}
    for turn in range(repetitions + 1):
        for name, (work, units) in alternatives.items():
            if units == MEASURES_ITSELF and not turn:
                continue
            started = time.perf_counter()
            answer = work()
            elapsed = (time.perf_counter() - started) / units if units != MEASURES_ITSELF else float(answer)
            if turn:
                seconds[name].append(elapsed)
    return {name: Timing(name, values) for name, values in seconds.items()}


def middle_round(start: Callable[..., object], local_steps: int) -> float:
    """Return the seconds per step in the median round of a run; in other rounds some engines compile or save x."""
    ends: list[float] = []
    start(callbacks=[lambda progress: ends.append(time.perf_counter())])
    return statistics.median(after - before for before, after in pairwise(ends)) / local_steps


def report(title: str, timings: dict[str, Timing], baseline: str, unit: str) -> None:
    """Print a table of medians, fastest and slowest times, and speed relative to the baseline."""
    print(f"\n{title}")
    print(f"  {'':34} {'median ' + unit:>16} {'fastest … slowest':>24} {'times faster':>14}")
    base = timings[baseline].median
    for timing in timings.values():
        low, high = timing.spread
        print(
            f"  {timing.name:34} {1e3 * timing.median:13.3f} ms {1e3 * low:10.3f} … {1e3 * high:8.3f} ms "
            f"{base / timing.median:13.1f}×"
        )


def as_rows(timings: dict[str, Timing], baseline: str) -> list[dict[str, Any]]:
    """Return the same table as numbers, to be saved."""
    return [
        {
            "name": timing.name,
            "median": timing.median,
            "fastest": timing.spread[0],
            "slowest": timing.spread[1],
            "times_faster": timings[baseline].median / timing.median,
        }
        for timing in timings.values()
    ]


def matmul_peak(threads: int, size: int = 1536) -> float:
    """Return the floating-point operations per second of a large matrix product, the machine's peak."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    a, b = torch.randn(size, size), torch.randn(size, size)
    timing = interleave({"matmul": (lambda: a @ b, 1)}, repetitions=9)["matmul"]
    torch.set_num_threads(before)
    return 2 * size**3 / min(timing.seconds)


def operations(work: Callable[[], object]) -> int:
    """Return the floating-point operations of the convolutions and matrix products that `work` does in this thread."""
    with FlopCounterMode(display=False) as counter:
        work()
    return int(counter.get_total_flops())


def kept_bytes(work: Callable[[], object]) -> int:
    """Return the largest number of bytes that `work` keeps for differentiation at a time."""
    now = most = 0

    class Kept:
        def __init__(self, tensor: torch.Tensor):
            nonlocal now, most
            self.tensor, self.size = tensor, tensor.nbytes
            now += self.size
            most = max(most, now)

        def __del__(self) -> None:
            nonlocal now
            now -= self.size

    with torch.autograd.graph.saved_tensors_hooks(Kept, lambda kept: kept.tensor):
        work()
    return most


def report_peak(name: str, operations: int, seconds: float) -> float:
    """Print and return the share of the machine's peak that is reached."""
    cores = len(os.sched_getaffinity(0))
    peak = matmul_peak(cores)
    print(
        f"  {name}: {operations / 1e9:.1f} GFLOP in {1e3 * seconds:.0f} ms, {operations / seconds / 1e9:.0f} GFLOP/s, "
        f"{100 * operations / seconds / peak:.0f} % of a matrix product's {peak / 1e9:.0f} GFLOP/s on {cores} cores"
    )
    return operations / seconds / peak


def describe_machine() -> None:
    """Print one line that describes the machine."""
    cores = len(os.sched_getaffinity(0))
    print(f"{platform.machine()}, {cores} cores, torch {torch.__version__}, {torch.get_num_threads()} threads")
