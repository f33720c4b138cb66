"""Save and load results as JSON in `benchmarks/results/`, with a description of the machine."""

import json
import os
import platform
import sys
import time
from pathlib import Path
from typing import Any

import torch

from fedcso.core import atomic
from fedcso.runs.folder import git_commit

FOLDER = Path(__file__).parent / "results"
IDLE = 3
"""The position of the idle time in the first line of /proc/stat."""


def save(name: str, **content: Any) -> None:
    """Save the results of a benchmark."""
    FOLDER.mkdir(exist_ok=True)
    described = {"benchmark": name, "measured": time.strftime("%Y-%m-%d %H:%M"), "machine": machine(), **content}
    atomic.write(FOLDER / f"{name}.json", json.dumps(described, indent=1) + "\n")
    print(f"\nsaved to {FOLDER / name}.json")


def machine() -> dict[str, Any]:
    """Return a description of the machine, and how busy it is."""
    return {
        "processor": processor(),
        "cores": len(os.sched_getaffinity(0)),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "commit": git_commit(),
        "busy": round(busy(), 2),
        "quick": "--quick" in sys.argv,
    }


def busy(seconds: float = 0.5) -> float:
    """Return the share of the cores that other processes use; 0 if it can't be measured."""
    before = _clock_ticks()
    time.sleep(seconds)
    passed = [after - earlier for earlier, after in zip(before, _clock_ticks(), strict=True)]
    return 1 - passed[IDLE] / sum(passed) if sum(passed) else 0.0


def _clock_ticks() -> list[int]:
    try:
        return [int(word) for word in Path("/proc/stat").read_text().split("\n")[0].split()[1:]]
    except OSError:
        return []


def processor() -> str:
    """Return the name of the processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())


def load_all() -> dict[str, dict[str, Any]]:
    """Return the latest results of all benchmarks by name."""
    return {path.stem: json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json"))}
