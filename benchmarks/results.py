"""Measured numbers as JSON in `benchmarks/results/`, with the machine they were measured on."""

import json
import os
import platform
import time
from pathlib import Path
from typing import Any

import torch

from fedcso import atomic
from fedcso.folder import git_commit

FOLDER = Path(__file__).parent / "results"


def keep(name: str, **content: Any) -> None:
    """Put what a benchmark has measured where the page is made from."""
    FOLDER.mkdir(exist_ok=True)
    described = {"benchmark": name, "measured": time.strftime("%Y-%m-%d %H:%M"), "machine": machine(), **content}
    atomic.write(FOLDER / f"{name}.json", json.dumps(described, indent=1) + "\n")
    print(f"\nkept in {FOLDER / name}.json")


def machine() -> dict[str, Any]:
    """What the numbers were measured on, and what else it had to do."""
    return {
        "processor": processor(),
        "cores": len(os.sched_getaffinity(0)),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "commit": git_commit(),
        "load": round(os.getloadavg()[0], 1),
    }


def processor() -> str:
    """The processor's name."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())


def kept() -> dict[str, dict[str, Any]]:
    """All that has been measured, by name."""
    return {path.stem: json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json"))}
