"""Walk through the README as a newcomer: in a clean clone, run all its code in order, and say how long each step took.

    python -m tests.walk [--skip TEXT …]

Shell blocks are run line by line, Python blocks as a program each. `make run`, the first command, makes the environment
that the others use. Commands that contain one of the texts are left out, and shown as such: `--skip 'make test'` saves
half an hour. The exit code is 1 if a step failed.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.S | re.M)
SHOWN = 90
"""Characters of a command in the table."""


class Step(NamedTuple):
    """A command of the README, as a newcomer would enter it."""

    code: str
    language: str = ""

    @property
    def arguments(self) -> list[str]:
        """How the step is started."""
        return ["python", "-c", self.code] if self.language == "python" else ["bash", "-c", self.code]

    @property
    def title(self) -> str:
        """The step in one line."""
        line = next(line for line in self.code.splitlines() if line.strip())
        return f"python: {line}"[:SHOWN] if self.language == "python" else line[:SHOWN]


class Outcome(NamedTuple):
    """What came of a step."""

    step: Step
    code: int | None
    """The exit code; None if the step was left out."""
    seconds: float = 0.0


def steps(text: str) -> Iterator[Step]:
    """Return what a page shows in its code blocks."""
    for language, content in BLOCK.findall(text):
        if language == "python":
            yield Step(content, language)
        else:
            yield from (Step(line) for line in content.splitlines() if line.strip())


def take(step: Step, folder: Path) -> Outcome:
    """Run a step in the clone, with the clone's environment first on the path."""
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    environment["PATH"] = f"{folder / '.venv' / 'bin'}:{environment['PATH']}"
    started = time.monotonic()
    done = subprocess.run(step.arguments, cwd=folder, env=environment, stdin=subprocess.DEVNULL, check=False)
    return Outcome(step, done.returncode, time.monotonic() - started)


def table(outcomes: Sequence[Outcome]) -> str:
    """Return the outcomes as a table in Markdown."""
    lines = ["| command | exit code | seconds |", "| --- | ---: | ---: |"]
    for step, code, seconds in outcomes:
        lines.append(f"| `{step.title}` | " + ("left out | |" if code is None else f"{code} | {seconds:.0f} |"))
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> int:
    """Walk, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.walk", description=__doc__.partition("\n")[0])
    parser.add_argument("--skip", nargs="*", default=[], metavar="TEXT", help="leave out commands that contain a text")
    skipped = parser.parse_args(arguments).skip
    outcomes = []
    with tempfile.TemporaryDirectory() as place:
        clone = Path(place) / "fedcso"
        subprocess.run(["git", "clone", "--quiet", ROOT, clone], check=True)
        for step in steps((clone / "README.md").read_text()):
            print(f"\n$ {step.title}", flush=True)
            left_out = any(text in step.code for text in skipped)
            outcomes.append(Outcome(step, None) if left_out else take(step, clone))
    print("", table(outcomes), sep="\n")
    return int(any(outcome.code for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
