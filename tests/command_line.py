"""What tests of the command line need: calling it in this process, and reading what a run leaves."""

import csv
import io
import logging
import os
import re
import signal
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from fedcso.cli.main import main
from fedcso.reports import figures, outputs
from fedcso.runs import execute
from fedcso.runs.progress import Lines

FINE, BROKE_OFF, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130
"""What the exit codes mean."""

SMALL = ["--rounds", "3", "--local-steps", "2", "--seeds", "2", "--clients", "3"]
LOGISTIC = ["invariant_logistic", *SMALL, "--test-points", "30"]
QUADRATIC = ["nested_quadratic", *SMALL]
CLASSIFICATION = ["classification", *SMALL]


class Outcome(NamedTuple):
    """How a command ended and what it said."""

    code: int
    out: str
    err: str


def call(*arguments: object) -> Outcome:
    """Run a command in this process, as from a shell."""
    log = logging.getLogger("fedcso")
    log.handlers.clear()  # made for the streams of an earlier call
    out, err = io.StringIO(), io.StringIO()
    try:
        with redirect_stdout(out), redirect_stderr(err):
            try:
                code = main([str(argument) for argument in arguments])
            except SystemExit as leaving:  # as --help does
                code = int(leaving.code or FINE)
    finally:
        for handler in list(log.handlers):
            log.removeHandler(handler)
            handler.close()
    return Outcome(code, out.getvalue(), err.getvalue())


def folders(place: Path) -> list[Path]:
    """All that a command has put into the folder for runs, oldest first."""
    return sorted(place.iterdir(), key=os.path.getmtime) if place.is_dir() else []


def run(*arguments: object, out: Path, code: int = FINE) -> Path:
    """Carry out a command that makes a run folder; returns the folder."""
    before = folders(out)
    outcome = call(*arguments, "--out", out)
    assert outcome.code == code, outcome.err
    (new,) = [path for path in folders(out) if path not in before]
    return new


def without_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave figures empty."""
    monkeypatch.setattr(figures, "render", lambda figure, kind: b"")


def without_drawing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave figures and exported networks empty: they take longest by far, and are not the point of most tests."""
    without_figures(monkeypatch)
    monkeypatch.setattr(outputs, "as_onnx", lambda network: b"")


def interrupt_after(monkeypatch: pytest.MonkeyPatch, rounds: int, unit: str = "", times: int = 1) -> None:
    """Press Ctrl-C when a unit (whose name begins so) has come so far."""

    class Impatient(Lines):
        def update(self, name: str, done: int, total: int, note: str) -> None:
            super().update(name, done, total, note)
            if done == rounds and name.startswith(unit):
                for _ in range(times):
                    signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(execute, "display", Impatient)


# ------------------------------------------------------------------------------- reading folders


def read_csv(path: Path) -> list[dict[str, str]]:
    """The rows of a table."""
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def timeless(rows: list[dict[str, str]]) -> list[dict[str, str]]:
    """Rows without the time it took."""
    return [{key: value for key, value in row.items() if key != "seconds"} for row in rows]


NEVER_THE_SAME = ("log.txt", "env.json", "said.txt")
"""Moments, and the process that began the run."""


def contents(folder: Path) -> dict[str, Any]:
    """Everything in a run folder that does not depend on when and how fast it ran."""
    result: dict[str, Any] = {}
    for path in sorted(folder.iterdir()):
        if path.name in NEVER_THE_SAME or path.name.startswith(".") or path.is_dir():
            continue
        if path.suffix == ".csv":
            result[path.name] = timeless(read_csv(path))
        elif path.name in ("table.md", "table.tex", "report.html"):
            result[path.name] = _without_last_cells(path.read_text())
        else:
            result[path.name] = path.read_bytes()
    return result


def _without_last_cells(text: str) -> str:
    """Seconds are the last column of all tables, and an axis of the page's curves; the environment differs too."""
    text = re.sub(r"<details><summary>Environment</summary>.*?</details>", "", text, flags=re.DOTALL)
    text = re.sub(r'"seconds": (\[[^]]*\]|[^,}]*)', "", text)
    text = re.sub(r"<td>[^<]*</td></tr>", "</tr>", text)
    return re.sub(r"[|&] [\d.]+ (\|$|\\\\$)", "", text, flags=re.MULTILINE)


def assert_same_contents(actual: Path, expected: Path) -> None:
    """The same files with the same contents, to the bit."""
    found, wanted = contents(actual), contents(expected)
    assert found.keys() == wanted.keys()
    for name in wanted:
        assert found[name] == wanted[name], name
