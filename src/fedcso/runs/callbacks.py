"""What happens after every round of a run besides the next one: callbacks of `fedcso.engines.run`, one job each.

They compose: a study gives each of its runs a checkpoint, a line on the display, a tracker, a warning, and a way to be
stopped; a program may give `run(…, callbacks=[…])` any of them, or a function of its own.
"""

import logging
import math
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from fedcso.core.errors import FedcsoError, require, require_count
from fedcso.engines.loop import Progress
from fedcso.runs import checkpoint
from fedcso.runs.collapse import collapse
from fedcso.runs.progress import Display
from fedcso.runs.tracking import Tracker

log = logging.getLogger("fedcso")


class Interrupted(FedcsoError):
    """Ctrl-C, or a request to end; a checkpoint has been written."""


@dataclass
class Show:
    """Shows how far runs have come: rounds, the current metric, bytes."""

    display: Display
    name: str
    rounds: int

    def __call__(self, progress: Progress) -> None:
        """Move the bar; runs that are over before their last round are at its end."""
        self.say(self.rounds if progress.over else progress.done, _note(progress))

    def say(self, done: int, note: str) -> None:
        """Show so many rounds, and a note."""
        self.display.update(self.name, done, self.rounds, note)


@dataclass
class Track:
    """Hands the metrics of every round to a tracker."""

    tracker: Tracker
    name: str
    seeds: Sequence[int]

    def __call__(self, progress: Progress) -> None:
        """Log them."""
        self.tracker.log(self.name, self.seeds, progress)


@dataclass
class WarnOfCollapse:
    """Warns once of every run that had learnt something and then lost it."""

    name: str
    seeds: Sequence[int]
    warned: set[int] = field(default_factory=set)

    def __call__(self, progress: Progress) -> None:
        """Look at the evaluations so far."""
        for number, trace in enumerate(progress.traces):
            if number not in self.warned and (reason := collapse(trace.rows, progress.declared)):
                self.warned.add(number)
                log.warning("%s, seed %d %s", self.name, self.seeds[number % len(self.seeds)], reason)


@dataclass(frozen=True)
class Rhythm:
    """How often checkpoints are written."""

    rounds: int = 0
    """Rounds between two of them; 0 leaves it to the clock."""
    seconds: float = 30.0
    """Seconds between two of them."""

    def __post_init__(self) -> None:
        require_count("checkpoint_rounds", self.rounds, least=0)
        require("checkpoint_seconds", self.seconds, lambda s: s >= 0, "at least 0")


class Checkpoint:
    """Writes a snapshot into a folder in a rhythm, and at the end; then calls `then`, for what depends on it."""

    def __init__(self, folder: Path, rhythm: Rhythm = Rhythm(), done: int = 0, then: Callable[[], None] | None = None):  # noqa: B008 - frozen
        self.folder, self.rhythm, self.then = folder, rhythm, then
        self._saved_round, self._saved_at = done, time.monotonic()

    def __call__(self, progress: Progress) -> None:
        """Write if it is time."""
        rounds = self.rhythm.rounds and progress.done - self._saved_round >= self.rhythm.rounds
        if progress.over or rounds or time.monotonic() - self._saved_at >= self.rhythm.seconds:
            self.save(progress)

    def save(self, progress: Progress) -> None:
        """Write now, unless this round is saved already."""
        if progress.done == self._saved_round:
            return
        checkpoint.save(self.folder, progress.snapshot())
        if self.then is not None:
            self.then()
        self._saved_round, self._saved_at = progress.done, time.monotonic()


@dataclass
class StopOnRequest:
    """Stops a run that is not over when its end was requested, with everything saved."""

    requested: threading.Event
    checkpoint: Checkpoint
    name: str
    rounds: int

    def __call__(self, progress: Progress) -> None:
        """Raise `Interrupted` if so."""
        if self.requested.is_set() and not progress.over:
            self.checkpoint.save(progress)
            raise Interrupted(f"stopped after round {progress.done} of {self.rounds} of {self.name}")


@contextmanager
def stop_requests() -> Iterator[threading.Event]:
    """Yield a flag that Ctrl-C and SIGTERM set, to be looked at between rounds; a second one ends at once."""
    flag = threading.Event()

    def handler(number: int, frame: FrameType | None) -> None:
        if flag.is_set():
            raise KeyboardInterrupt
        flag.set()
        log.warning("stopping after this round (once more to stop at once)")

    if threading.current_thread() is not threading.main_thread():
        yield flag
        return
    before = {number: signal.signal(number, handler) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield flag
    finally:
        for number, previous in before.items():
            signal.signal(number, previous)


def _note(progress: Progress) -> str:
    """Return the most telling metric (mean over runs that have not failed) and the bytes sent per run."""
    alive = [trace for trace in progress.traces if not trace.failure]
    if not alive:
        return "broke off"
    metric = progress.declared.headline
    value = sum(trace.rows[-1].get(metric, math.nan) for trace in alive) / len(alive)
    size = (alive[0].costs.bytes_up + alive[0].costs.bytes_down) / 1e6
    return f"{metric} {value:.4g}  {size:.2f} MB"
