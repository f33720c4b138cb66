"""Callbacks for `fedcso.engines.run(…, callbacks=[…])`, which are called after every round. Each has one job.

A study passes a progress display, a tracker, a collapse warning, a checkpoint and a stop request to each of its runs. A
callback can be any function that takes a `Progress`.
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
    """The run was interrupted by Ctrl-C or SIGTERM, after a checkpoint was written."""

    exit_code = 130


@dataclass
class Show:
    """Shows the progress of runs: rounds, the current metric, bytes."""

    display: Display
    name: str
    rounds: int

    def __call__(self, progress: Progress) -> None:
        """Update the display; a run that ended early is shown as complete."""
        self.say(self.rounds if progress.over else progress.done, _note(progress))

    def say(self, done: int, note: str) -> None:
        """Show the number of completed rounds and a note."""
        self.display.update(self.name, done, self.rounds, note)


@dataclass
class Track:
    """Passes the metrics of every round to a tracker."""

    tracker: Tracker
    name: str
    seeds: Sequence[int]

    def __call__(self, progress: Progress) -> None:
        """Log the metrics."""
        self.tracker.log(self.name, self.seeds, progress)


@dataclass
class WarnOfCollapse:
    """Warns once about each run that has collapsed."""

    name: str
    seeds: Sequence[int]
    warned: set[int] = field(default_factory=set)

    def __call__(self, progress: Progress) -> None:
        """Check the evaluations so far."""
        for number, trace in enumerate(progress.traces):
            if number not in self.warned and (reason := collapse(trace.rows, progress.declared)):
                self.warned.add(number)
                log.warning("%s, seed %d %s", self.name, self.seeds[number % len(self.seeds)], reason)


@dataclass(frozen=True)
class Rhythm:
    """How often checkpoints are written."""

    rounds: int = 0
    """Rounds between checkpoints; 0 to use `seconds` alone."""
    seconds: float = 30.0
    """Seconds between checkpoints."""

    def __post_init__(self) -> None:
        require_count("checkpoint_rounds", self.rounds, least=0)
        require("checkpoint_seconds", self.seconds, lambda s: s >= 0, "at least 0")


class Checkpoint:
    """Writes checkpoints regularly and at the end, and calls `then` after each."""

    def __init__(self, folder: Path, rhythm: Rhythm, done: int = 0, then: Callable[[], None] | None = None):
        self.folder, self.rhythm, self.then = folder, rhythm, then
        self._saved_round, self._saved_at = done, time.monotonic()

    def __call__(self, progress: Progress) -> None:
        """Write a checkpoint if one is due."""
        rounds = self.rhythm.rounds and progress.done - self._saved_round >= self.rhythm.rounds
        if progress.over or rounds or time.monotonic() - self._saved_at >= self.rhythm.seconds:
            self.save(progress)

    def save(self, progress: Progress) -> None:
        """Write a checkpoint now, unless this round has one."""
        if progress.done == self._saved_round:
            return
        checkpoint.save(self.folder, progress.snapshot())
        if self.then is not None:
            self.then()
        self._saved_round, self._saved_at = progress.done, time.monotonic()


@dataclass
class StopOnRequest:
    """Stops a run on request, after writing a checkpoint."""

    requested: threading.Event
    checkpoint: Checkpoint
    name: str
    rounds: int

    def __call__(self, progress: Progress) -> None:
        """Raise `Interrupted` if a stop was requested and rounds are left."""
        if self.requested.is_set() and not progress.over:
            self.checkpoint.save(progress)
            raise Interrupted(f"stopped after round {progress.done} of {self.rounds} of {self.name}")


@contextmanager
def stop_requests() -> Iterator[threading.Event]:
    """Yield a flag that Ctrl-C and SIGTERM set; a second signal raises KeyboardInterrupt at once."""
    flag = threading.Event()

    def handler(number: int, frame: FrameType | None) -> None:
        if flag.is_set():
            raise KeyboardInterrupt
        flag.set()
        log.warning("stopping after this round (press Ctrl-C again to stop at once)")

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
