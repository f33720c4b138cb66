"""Units of work, carried out one after the other with checkpoints: stop at any moment, go on later.

A unit is one or several settings of one method, for several seeds, on one task. It is played in parts: all
at once where models are small enough to be stacked, else run by run. Every part leaves checkpoints, the
last of which is its result, so that going on after an interruption is the same as never having stopped.
"""

import logging
import math
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from fedcso.core.algorithm import Algorithm
from fedcso.core.codec import Codec, full
from fedcso.core.errors import FedcsoError
from fedcso.core.estimator import Estimator
from fedcso.core.metric import Declared
from fedcso.core.plan import Plan
from fedcso.core.task import Task
from fedcso.core.trace import Trace
from fedcso.engines import ranks, run_grid
from fedcso.engines.engine import Engine
from fedcso.engines.job import Job
from fedcso.engines.loop import Callback, Progress, declare, over
from fedcso.engines.running import named
from fedcso.engines.snapshot import Snapshot
from fedcso.estimators.plain import plain
from fedcso.runs import checkpoint
from fedcso.runs.collapse import collapse
from fedcso.runs.progress import Display
from fedcso.runs.tracking import Tracker

log = logging.getLogger("fedcso")


class Interrupted(FedcsoError):
    """Ctrl-C, or a request to end; a checkpoint has been written."""


@dataclass(frozen=True)
class Unit:
    """Settings of one method × seeds on one task."""

    name: str
    task: Task
    plan: Plan
    algorithms: Sequence[Algorithm]
    seeds: Sequence[int]
    estimator: Estimator = plain
    engine: str | Engine = "simulation"
    """By name, or an engine itself."""
    device: str = "cpu"
    codec: Codec = full


@dataclass(frozen=True)
class Part:
    """What is played in one go, and leaves checkpoints of its own."""

    name: str
    algorithms: Sequence[Algorithm]
    seeds: Sequence[int]
    run: Callable[..., list[Trace]]


Results = dict[str, list[list[Trace]]]
"""By unit: `results[name][setting][seed]`."""


@dataclass(frozen=True)
class Study:
    """Units of work and where their checkpoints go."""

    units: Sequence[Unit]
    folder: Path
    every_rounds: int = 0
    """Rounds between two checkpoints; 0 leaves it to the clock."""
    every_seconds: float = 30.0
    """Seconds between two checkpoints."""

    def execute(self, display: Display, tracker: Tracker, on_checkpoint: Callable[[], None] = lambda: None) -> Results:
        """Carry out what is not done yet. Raises `Interrupted` after Ctrl-C, with everything saved."""
        with _interruptible() as interrupted, display:
            try:
                return {u.name: self._unit(u, display, tracker, on_checkpoint, interrupted) for u in self.units}
            finally:
                ranks.dismiss()

    def follow(self) -> None:
        """On a rank that does not lead: take part in whatever the leader carries out."""
        known = {_key(unit, part): part for unit in self.units for part in parts(unit)}
        while name := ranks.hear():
            try:
                known[name].run()
            except ranks.RankLost:
                raise
            except FedcsoError as reason:  # the leader has met it too, and tells of it
                log.info("rank %d: %s", ranks.rank(), reason)

    def collect(self) -> Results:
        """What the checkpoints hold so far, without carrying out anything."""
        return {unit.name: _by_setting(unit, [self._saved(unit, part) for part in parts(unit)]) for unit in self.units}

    def _saved(self, unit: Unit, part: Part) -> list[Trace]:
        snapshot = checkpoint.newest(self._place(unit, part))
        return snapshot.traces if snapshot else []

    def _place(self, unit: Unit, part: Part) -> Path:
        return self.folder / as_file_name(unit.name) / part.name

    def _unit(
        self,
        unit: Unit,
        display: Display,
        tracker: Tracker,
        on_checkpoint: Callable[[], None],
        interrupted: threading.Event,
    ) -> list[list[Trace]]:
        every = parts(unit)
        traces = [
            self._part(unit, part, _label(unit, part, len(every)), display, tracker, on_checkpoint, interrupted)
            for part in every
        ]
        return _by_setting(unit, traces)

    def _part(
        self,
        unit: Unit,
        part: Part,
        label: str,
        display: Display,
        tracker: Tracker,
        on_checkpoint: Callable[[], None],
        interrupted: threading.Event,
    ) -> list[Trace]:
        place = self._place(unit, part)
        start = checkpoint.newest(place, unit.device)
        total = unit.plan.rounds
        if start and over(unit.plan, start.done, start.traces):
            display.update(label, total, total, "already done")
            return start.traces
        saved_at, saved_round = time.monotonic(), start.done if start else 0
        told: set[int] = set()
        declared = declare(unit.task)

        def on_round(progress: Progress) -> None:
            nonlocal saved_at, saved_round
            for number, trace in enumerate(progress.traces):
                if number not in told and (reason := collapse(trace.rows, declared)):
                    told.add(number)
                    log.warning("%s, seed %d %s", label, part.seeds[number % len(part.seeds)], reason)
            ended = over(unit.plan, progress.done, progress.traces)
            display.update(label, total if ended else progress.done, total, _note(progress.traces, declared))
            tracker.log(unit.name, part.seeds, progress)
            due = self.every_rounds and progress.done - saved_round >= self.every_rounds
            due = due or time.monotonic() - saved_at >= self.every_seconds
            if ended or due or interrupted.is_set():
                checkpoint.save(place, progress.snapshot())
                on_checkpoint()
                saved_at, saved_round = time.monotonic(), progress.done
            if interrupted.is_set() and not ended:
                raise Interrupted(f"stopped after round {progress.done} of {total} of {label}")

        display.update(label, start.done if start else 0, total, "")
        ranks.tell(_key(unit, part))
        traces = part.run([on_round], start)
        log.info("%s: %d rounds done", label, total)
        for trace in traces:
            if trace.failure:
                log.warning("%s broke off: %s", label, trace.failure)
        return traces


def parts(unit: Unit) -> list[Part]:
    """Return how a unit is played: stacked as a whole, or every run by itself."""
    engine = named(unit.engine)

    def part(name: str, algorithms: Sequence[Algorithm], seeds: Sequence[int]) -> Part:
        def play(callbacks: Sequence[Callback] = (), start: Snapshot | None = None) -> list[Trace]:
            grid = run_grid(
                algorithms,
                unit.task,
                unit.plan,
                seeds,
                engine=engine,
                estimator=unit.estimator,
                codec=unit.codec,
                device=unit.device,
                callbacks=callbacks,
                start=start,
            )
            return [trace for setting in grid for trace in setting]

        return Part(name, algorithms, seeds, play)

    if engine.plays_grids(Job(unit.algorithms[0], unit.task, unit.plan, estimator=unit.estimator, codec=unit.codec)):
        return [part("all", unit.algorithms, unit.seeds)]
    return [
        part(f"setting{g}-seed{seed}", [algorithm], [seed])
        for g, algorithm in enumerate(unit.algorithms)
        for seed in unit.seeds
    ]


def _by_setting(unit: Unit, traces: Sequence[list[Trace]]) -> list[list[Trace]]:
    flat = [trace for part in traces for trace in part]
    count = len(unit.seeds)
    return [flat[i : i + count] for i in range(0, len(flat), count)]


def _key(unit: Unit, part: Part) -> str:
    return f"{unit.name}/{part.name}"


def _label(unit: Unit, part: Part, count: int) -> str:
    return unit.name if count == 1 else f"{unit.name} {part.name}"


def as_file_name(name: str) -> str:
    """A name without characters that mean something to a file system."""
    return "".join(c if c.isalnum() or c in "-_.=" else "_" for c in name)


def _note(traces: Sequence[Trace], declared: Declared) -> str:
    """The most telling metric (mean over runs that are alive) and the bytes sent per run."""
    alive = [trace for trace in traces if not trace.failure]
    if not alive:
        return "broke off"
    value = sum(trace.rows[-1].get(declared.headline, math.nan) for trace in alive) / len(alive)
    size = (alive[0].costs.bytes_up + alive[0].costs.bytes_down) / 1e6
    return f"{declared.headline} {value:.4g}  {size:.2f} MB"


@contextmanager
def _interruptible() -> Iterator[threading.Event]:
    """Ctrl-C and SIGTERM set a flag, looked at between rounds; a second one ends at once."""
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
