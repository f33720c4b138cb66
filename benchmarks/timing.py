"""Interleaved timing: every alternative in turn, several times over, so that all see the same machine."""

import os
import platform
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch


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


def interleave(alternatives: dict[str, tuple[Callable[[], object], float]], repetitions: int = 5) -> dict[str, Timing]:
    """Time each (function, units of work it does) in turns; the first, warming turn is left out."""
    seconds: dict[str, list[float]] = {name: [] for name in alternatives}
    for turn in range(repetitions + 1):
        for name, (work, units) in alternatives.items():
            started = time.perf_counter()
            work()
            elapsed = (time.perf_counter() - started) / units
            if turn:
                seconds[name].append(elapsed)
    return {name: Timing(name, values) for name, values in seconds.items()}


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


def describe_machine() -> None:
    """One line on what the numbers were measured on."""
    cores = len(os.sched_getaffinity(0))
    print(f"{platform.machine()}, {cores} cores, torch {torch.__version__}, {torch.get_num_threads()} threads")
