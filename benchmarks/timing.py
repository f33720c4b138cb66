"""Interleaved timing: every alternative in turn, several times over, so that all see the same machine."""

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
    """Seconds per unit of work, over the repetitions."""

    name: str
    seconds: list[float]

    @property
    def median(self) -> float:
        """The middle repetition."""
        return statistics.median(self.seconds)

    @property
    def spread(self) -> tuple[float, float]:
        """Fastest and slowest repetition."""
        return min(self.seconds), max(self.seconds)


MEASURES_ITSELF = 0.0
"""For work that takes long to set up: it returns the seconds a unit took, and warms up by itself."""


Alternatives = dict[str, tuple[Callable[[], Any], float]]
"""By name: some work, and how many units of it that is."""


def interleave(alternatives: Alternatives, repetitions: int = 5) -> dict[str, Timing]:
    """Time each (function, units of work it does) in turns; the first, warming turn is left out."""
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


def middle_round(play: Callable[..., object], local_steps: int) -> float:
    """Seconds a step of a run's middle round: some of the others compile, or keep x for the output."""
    ends: list[float] = []
    play(callbacks=[lambda progress: ends.append(time.perf_counter())])
    return statistics.median(after - before for before, after in pairwise(ends)) / local_steps


def report(title: str, timings: dict[str, Timing], baseline: str, unit: str) -> None:
    """A table of medians, spreads and ratios to the baseline (above 1: faster than it)."""
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
    """The same as numbers, to be kept."""
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
    """Floating-point operations a second of a large matrix product: what the machine can do at best."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    a, b = torch.randn(size, size), torch.randn(size, size)
    timing = interleave({"matmul": (lambda: a @ b, 1)}, repetitions=9)["matmul"]
    torch.set_num_threads(before)
    return 2 * size**3 / min(timing.seconds)


def operations(work: Callable[[], object]) -> int:
    """Floating-point operations of the convolutions and matrix products in some work of this thread."""
    with FlopCounterMode(display=False) as counter:
        work()
    return int(counter.get_total_flops())


def report_peak(name: str, operations: int, seconds: float) -> float:
    """How much of the machine's best is reached, printed and returned as a share."""
    cores = len(os.sched_getaffinity(0))
    peak = matmul_peak(cores)
    print(
        f"  {name}: {operations / 1e9:.1f} GFLOP in {1e3 * seconds:.0f} ms, {operations / seconds / 1e9:.0f} GFLOP/s, "
        f"{100 * operations / seconds / peak:.0f} % of a matrix product's {peak / 1e9:.0f} GFLOP/s on {cores} cores"
    )
    return operations / seconds / peak


def describe_machine() -> None:
    """One line on what the numbers were measured on."""
    cores = len(os.sched_getaffinity(0))
    print(f"{platform.machine()}, {cores} cores, torch {torch.__version__}, {torch.get_num_threads()} threads")
