"""Measure what people wait for before anything happens: imports, lists and help, compared with importing torch.

    python -m benchmarks.start_up

Each line is a new process. They are timed in turn, so that the ratios hold on a busy machine too.
"""

import subprocess
import sys
from functools import partial

from benchmarks.results import save
from benchmarks.timing import Alternatives, as_rows, describe_machine, interleave, report

TORCH = "import torch"
PACKAGE, RUN = "import fedcso", "import fedcso, and what a run needs"
COMMANDS = ("fedcso --help", "fedcso list", "fedcso run --help")
MOST = {PACKAGE: 1.15, RUN: 1.15} | dict.fromkeys(COMMANDS, 0.25)
"""The longest times, relative to importing torch."""


def main(quick: bool = False) -> None:
    """Time all lines."""
    describe_machine()
    needs = "from fedcso import Plan; from fedcso.engines import run; from fedcso.algorithms import FCSGM"
    lines = {TORCH: ["-c", TORCH], PACKAGE: ["-c", PACKAGE]}
    lines[RUN] = ["-c", f"{needs}; from fedcso.problems import invariant_logistic"]
    lines |= {command: ["-m", *command.split()] for command in COMMANDS}
    alternatives: Alternatives = {name: (partial(_python, arguments), 1) for name, arguments in lines.items()}
    timings = interleave(alternatives, repetitions=2 if quick else 9)
    report("start-up", timings, TORCH, "process")
    rows = as_rows(timings, TORCH)
    for row in rows:
        row["share"] = row["median"] / timings[TORCH].median
        row["most"] = MOST.get(row["name"])
    save("start_up", rows=rows)


def _python(arguments: list[str]) -> None:
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True)


if __name__ == "__main__":
    main("--quick" in sys.argv)
