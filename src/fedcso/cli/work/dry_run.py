"""Say what a command would do, and about how long it would take, without doing it."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from fedcso.reports.terminal import show
from fedcso.runs.config import Flat
from fedcso.runs.preview import Estimate, Previewed, peak_memory, previewing

LEAST = 1.0
"""Seconds below which an estimate says nothing more."""


def dry_run(start: Callable[[Path], object], then: str = "", times: int = 1) -> int:
    """Call a function that starts a command with a folder for its results, and stop it where the work would begin.

    `then` says what the command would do after this; `times` is how often it would do it.
    """
    print("measuring short rounds of what would be run", file=sys.stderr)
    with TemporaryDirectory() as place, previewing():
        try:
            start(Path(place))
        except Previewed as looked:
            _show(looked.estimates, then, times)
    return 0


def _show(estimates: Sequence[Estimate], then: str, times: int) -> None:
    rows = [
        {
            "what": one.unit.name,
            "settings": len(one.unit.algorithms),
            "seeds": len(one.unit.seeds),
            "rounds": one.unit.plan.rounds,
            "steps in a round": one.unit.plan.local_steps,
            "time, about": in_words(one.seconds),
        }
        for one in estimates
    ]
    show(rows, title="would be run first" if then else "would be run")
    total, runs = times * sum(one.seconds for one in estimates), times * sum(one.runs for one in estimates)
    print(
        f"{'this' if then else 'all '}    {runs} runs, about {in_words(total)} and {peak_memory():.0f} MB of memory: "
        "an estimate from short rounds, on this machine and as busy as it is now"
    )
    if then:
        print(f"then    {then}")
    print("nothing was run or written; leave out --dry-run to start")


def in_words(seconds: float) -> str:
    """Return a time with one or two digits: 40 seconds, 3 minutes, 2.5 hours."""
    if seconds < LEAST:
        return "a second"
    for unit, length in (("days", 86400.0), ("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= 1.5 * length:
            return f"{seconds / length:.2g} {unit}"
    return f"{seconds:.0f} seconds"


def here(settings: Flat, place: Path) -> Flat:
    """Return settings of a run with its folder in a given place, in this process, and reported to no tracker."""
    engine = "simulation" if settings["engine"] == "distributed" else settings["engine"]
    return settings | {"out": str(place), "engine": engine, "ranks": None, "track": "none"}
