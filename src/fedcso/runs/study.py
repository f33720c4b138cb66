"""Units of work, run one after the other with checkpoints: stop at any moment, resume later.

A unit is one or several settings of one method, for several seeds, on one task. It runs in parts: all
at once where models are small enough to be stacked, else run by run. Every part leaves checkpoints, the
last of which is its result, so that resuming after an interruption gives the same as never having stopped.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path

from fedcso.core.algorithm import Algorithm
from fedcso.core.codec import Codec, full
from fedcso.core.errors import FedcsoError
from fedcso.core.estimator import Estimator
from fedcso.core.plan import Plan
from fedcso.core.task import Task
from fedcso.core.trace import Trace
from fedcso.engines import ranks, run_grid, torchrun
from fedcso.engines.engine import Engine
from fedcso.engines.job import Job
from fedcso.engines.loop import Callback, over
from fedcso.engines.running import named
from fedcso.engines.snapshot import Snapshot
from fedcso.estimators.plain import plain
from fedcso.runs import checkpoint
from fedcso.runs.callbacks import (
    Checkpoint,
    Interrupted,
    Rhythm,
    Show,
    StopOnRequest,
    Track,
    WarnOfCollapse,
    stop_requests,
)
from fedcso.runs.progress import Display
from fedcso.runs.side_by_side import spread
from fedcso.runs.tracking import Tracker

log = logging.getLogger("fedcso")

PREVIEW: ContextVar["Callable[[Study], None] | None"] = ContextVar("preview", default=None)
"""Called with a study instead of executing it, and raises (`fedcso.runs.preview`)."""


@dataclass(frozen=True)
class Unit:
    """Settings of one method × seeds on one task."""

    name: str
    """The name on the display, in tables and of the checkpoint folder."""
    task: Task
    plan: Plan
    algorithms: Sequence[Algorithm]
    seeds: Sequence[int]
    estimator: Estimator = plain
    engine: str | Engine = "simulation"
    """A name in `ENGINES`, or an engine."""
    device: str = "cpu"
    codec: Codec = full
    """The codec for what the method shares."""
    labels: Mapping[str, str | float] = field(default_factory=dict)
    """What the unit stands for (method, noise, …), as data; names are never parsed."""


@dataclass(frozen=True)
class Part:
    """Runs of a unit that are executed together and share checkpoints."""

    unit: Unit
    folder: str
    """The name of the checkpoint folder within the unit's folder."""
    title: str
    algorithms: Sequence[Algorithm]
    seeds: Sequence[int]

    @property
    def key(self) -> str:
        """The identifier that all processes use for this part."""
        return f"{self.unit.name}/{self.folder}"

    def run(self, callbacks: Sequence[Callback] = (), start: Snapshot | None = None) -> list[Trace]:
        """Run the part and return the traces of all its runs."""
        unit = self.unit
        grid = run_grid(
            self.algorithms,
            unit.task,
            unit.plan,
            self.seeds,
            engine=unit.engine,
            estimator=unit.estimator,
            codec=unit.codec,
            device=unit.device,
            callbacks=callbacks,
            start=start,
        )
        return [trace for setting in grid for trace in setting]


def parts(unit: Unit) -> list[Part]:
    """Split a unit into parts: one if its runs can be stacked, else one per run."""
    job = Job(unit.algorithms[0], unit.task, unit.plan, estimator=unit.estimator, codec=unit.codec)
    if named(unit.engine).runs_grids(job):
        return [Part(unit, "all", unit.name, unit.algorithms, unit.seeds)]
    runs = {
        f"setting{number}-seed{seed}": (algorithm, seed)
        for number, algorithm in enumerate(unit.algorithms)
        for seed in unit.seeds
    }
    return [
        Part(unit, name, unit.name if len(runs) == 1 else f"{unit.name} {name}", [algorithm], [seed])
        for name, (algorithm, seed) in runs.items()
    ]


Results = dict[str, list[list[Trace]]]
"""Traces by unit: `results[name][setting][seed]`."""


@dataclass(frozen=True)
class Study:
    """Units of work and where their checkpoints go."""

    units: Sequence[Unit]
    folder: Path
    rhythm: Rhythm = Rhythm()  # noqa: RUF009 - frozen
    warns: bool = True
    """False if runs that collapse are part of the plan, as in a search."""
    recall: Callable[[Part], list[Trace] | None] = lambda part: None
    """Returns the traces of a part whose result is known, so that it need not run; else None."""
    on_finished: Callable[[Part, list[Trace]], None] = lambda part, traces: None
    """Called after every part that has run to its end."""
    processes: int = 1
    """Processes that run parts side by side, each on a core of its own."""

    def __post_init__(self) -> None:
        places: dict[str, str] = {}
        for unit in self.units:
            place = as_file_name(unit.name)
            if place in places:
                raise FedcsoError(f"{places[place]!r} and {unit.name!r} would share checkpoints; rename one of them")
            places[place] = unit.name

    def execute(self, display: Display, tracker: Tracker, on_checkpoint: Callable[[], None] = lambda: None) -> Results:
        """Run what is not finished yet; raise `Interrupted` after Ctrl-C, with everything saved.

        `on_checkpoint` is called after every checkpoint.
        """
        if (preview := PREVIEW.get()) is not None:
            preview(self)
        with stop_requests() as requested:
            order = self._in_order()

            def run(part: Part, display: Display) -> list[Trace]:
                rounds, place = part.unit.plan.rounds, self._place(part)
                show = Show(display, part.title, rounds)
                if (known := self.recall(part)) is not None:
                    show.say(rounds, "already done")
                    return known
                start = checkpoint.newest(place, part.unit.device)
                keep = Checkpoint(place, self.rhythm, start.done if start else 0, on_checkpoint)
                callbacks: list[Callback] = [
                    *([WarnOfCollapse(part.title, part.seeds)] if self.warns else []),
                    show,
                    Track(tracker, part.unit.name, part.seeds),
                    keep,
                    StopOnRequest(requested, keep, part.title, rounds),
                ]
                traces = _run_rest(part, start, show, callbacks)
                self.on_finished(part, traces)
                return traces

            side_by_side = self.processes > 1 and spread(
                len(order), lambda number, display: run(order[number], display), self.processes, requested
            )
            with display:
                try:
                    if side_by_side:
                        side_by_side(display)
                        if requested.is_set():
                            raise Interrupted("stopped after the rounds that were at work")
                    found = {part.key: run(part, display) for part in order}
                finally:
                    ranks.release_followers()
            return {unit.name: _by_setting(unit, [found[part.key] for part in parts(unit)]) for unit in self.units}

    def follow(self) -> None:
        """On a follower rank, take part in what the leader executes."""
        known = {part.key: part for unit in self.units for part in parts(unit)}
        while key := ranks.receive_command():
            try:
                known[key].run()
            except ranks.RankLost:
                raise
            except FedcsoError as reason:  # the leader raises and reports the same error
                log.info("rank %d: %s", torchrun.rank(), reason)

    def collect(self) -> Results:
        """Return what the checkpoints contain, without running anything."""
        return {unit.name: _by_setting(unit, [self._saved(part) for part in parts(unit)]) for unit in self.units}

    def _in_order(self) -> list[Part]:
        """Return all parts, seed by seed, so that a study that is interrupted has results of every unit."""
        every = [part for unit in self.units for part in parts(unit)]
        return sorted(every, key=lambda part: list(part.unit.seeds).index(part.seeds[0]))

    def _saved(self, part: Part) -> list[Trace]:
        snapshot = checkpoint.newest(self._place(part))
        return snapshot.traces if snapshot else []

    def _place(self, part: Part) -> Path:
        return self.folder / as_file_name(part.unit.name) / part.folder


def run_in_memory(units: Sequence[Unit]) -> Results:
    """Run units in memory, without checkpoints or display."""
    return {unit.name: _by_setting(unit, [part.run() for part in parts(unit)]) for unit in units}


def _run_rest(part: Part, start: Snapshot | None, show: Show, callbacks: Sequence[Callback]) -> list[Trace]:
    """Run the rounds that remain after a snapshot."""
    plan = part.unit.plan
    if start and over(part.unit.task, plan, start.done, start.traces):
        show.say(plan.rounds, "already done")
        return start.traces
    show.say(start.done if start else 0, "")
    ranks.send_command(part.key)
    traces = part.run(callbacks, start)
    log.info("%s: %d rounds done", part.title, max(trace.rows[-1]["round"] for trace in traces))
    for trace in traces:
        if trace.failure:
            log.warning("%s failed: %s", part.title, trace.failure)
    return traces


def seconds(units: Sequence[Unit], found: Results) -> float:
    """Return the computing time of some units; runs that were stacked share one clock."""
    total = 0.0
    for unit in units:
        clocks = [trace.rows[-1]["seconds"] for setting in found[unit.name] for trace in setting]
        for part in parts(unit):
            size = len(part.algorithms) * len(part.seeds)
            total, clocks = total + max(clocks[:size]), clocks[size:]
    return total


def _by_setting(unit: Unit, traces: Sequence[list[Trace]]) -> list[list[Trace]]:
    flat = [trace for part in traces for trace in part]
    count = len(unit.seeds)
    return [flat[i : i + count] for i in range(0, len(flat), count)]


def as_file_name(name: str) -> str:
    """Replace characters that are special in file names."""
    return "".join(c if c.isalnum() or c in "-_.=" else "_" for c in name)
