"""W4: seconds per round of every installed framework, timed in turn.

python -m venv .venv-peers && .venv-peers/bin/pip install -e '.[peers]'
.venv-peers/bin/python -m benchmarks.peers
"""

import importlib.util
import json
import subprocess
import sys
from functools import partial

from benchmarks.results import save
from benchmarks.timing import MEASURES_ITSELF, as_rows, describe_machine, interleave, report

FRAMEWORKS = {"fedcso": "fedcso", "pfl": "pfl", "fluke": "fluke", "flower": "flwr"}
"""The package that each script needs."""


def seconds_per_round(framework: str, rounds: int) -> float:
    """Run one framework in a new process and return its seconds per round, without its start."""
    command = [sys.executable, "-m", f"benchmarks.peers.{framework}_round", str(rounds)]
    answer = subprocess.run(command, capture_output=True, text=True)
    if answer.returncode:
        raise SystemExit(f"{framework} failed: {answer.stderr.strip().splitlines()[-1:]}")
    found = [line for line in answer.stdout.splitlines() if line.startswith('{"seconds_per_round"')]
    return float(json.loads(found[-1])["seconds_per_round"])


def main(quick: bool = False) -> None:
    describe_machine()
    installed = [name for name, package in FRAMEWORKS.items() if importlib.util.find_spec(package)]
    for name in FRAMEWORKS.keys() - set(installed):
        print(f"{name} is not installed and is skipped")
    rounds = 3 if quick else 6
    timings = interleave(
        {name: (partial(seconds_per_round, name, rounds), MEASURES_ITSELF) for name in installed},
        repetitions=2 if quick else 5,
    )
    report("One round of FedAvg, 16 clients × 5 steps × 32 pictures", timings, "fedcso", "round")
    others = [timing for name, timing in timings.items() if name != "fedcso"]
    if others:
        fastest = min(others, key=lambda timing: timing.median)
        ratio = fastest.median / timings["fedcso"].median
        print(f"  fedcso is {ratio:.1f} times as fast as {fastest.name}, the fastest of the others")
    save("peers", round=as_rows(timings, "fedcso"))


if __name__ == "__main__":
    main("--quick" in sys.argv)
