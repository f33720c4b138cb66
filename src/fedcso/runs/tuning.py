"""Tune hyper-parameters by a grid or a search."""

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, NamedTuple

from fedcso.codecs import SEND_U
from fedcso.core.algorithm import Algorithm
from fedcso.core.errors import FedcsoError, InvalidValue, UnknownName, require_count
from fedcso.core.task import Task
from fedcso.core.trace import Trace
from fedcso.runs import launch
from fedcso.runs.config import Flat, RunConfig, as_list, parse_seeds
from fedcso.runs.folder import RunFolder
from fedcso.runs.given import NOTHING, Given
from fedcso.runs.methods import Method, MethodSpec, owners
from fedcso.runs.search import Range, optimise
from fedcso.runs.study import Results, Unit


class Point(NamedTuple):
    """One setting of a method, with the values that were tried."""

    method: Method
    values: Mapping[str, Any]


@dataclass(frozen=True)
class SweepConfig:
    """The configuration of a sweep: that of the run, and what is tried."""

    run: RunConfig
    grid: Mapping[str, str] = field(default_factory=dict)
    """The values to try for each hyper-parameter, separated by commas."""
    search: Mapping[str, Range] = field(default_factory=dict)
    """The range to search for each hyper-parameter."""
    trials: int = 20
    """The number of points that a search tries."""
    metric: str | None = None
    """The deciding metric on validation data; the judge's choice by default."""
    tuning_seeds: tuple[int, ...] = (1000, 1001, 1002)

    def __post_init__(self) -> None:
        if bool(self.grid) == bool(self.search):
            raise FedcsoError("nothing to try: give --grid NAME=VALUE,VALUE or --search NAME=LOW:HIGH")
        require_count("trials", self.trials)
        if launch.over_ranks(self.run.engine):
            raise InvalidValue("engine", self.run.engine, "another engine for a sweep, whose runs are many and short")
        methods = ", ".join(spec.text for spec in self.run.methods)
        known = [*owners(self.run.methods), SEND_U]
        for option, names in {"grid": self.grid, "search": self.search}.items():
            for name in names:
                if name not in known:
                    raise UnknownName("hyper-parameter", name, known)
                if not any(name in self.parameters(spec) for spec in self.run.methods):
                    raise InvalidValue(option, name, f"a hyper-parameter of {methods}")
        for spec in self.run.methods:
            if self.search and not self.ranges(spec):
                raise InvalidValue("search", list(self.search), f"ranges for hyper-parameters of {spec.text}")

    @classmethod
    def from_flat(cls, values: Flat, objects: Given = NOTHING) -> "SweepConfig":
        """Read a flat configuration."""
        grid: dict[str, str] = {}
        for name, text in _assignments("grid", values, "NAME=VALUE,VALUE"):
            grid[name] = f"{grid[name]},{text}" if name in grid else text
        return cls(
            RunConfig.from_flat({name: value for name, value in values.items() if name not in _SWEEP}, objects=objects),
            grid,
            {name: Range.parse(name, text) for name, text in _assignments("search", values, "NAME=LOW:HIGH")},
            values.get("trials", 20),
            values.get("metric"),
            tuple(parse_seeds(values.get("tuning_seeds", [1000, 1001, 1002]), "tuning_seeds")),
        )

    @classmethod
    def of(cls, folder: RunFolder, objects: Given = NOTHING) -> "SweepConfig":
        """Read the configuration of a run folder; raise if the user's files have changed since the run started."""
        folder.require_same_sources()
        config = cls.from_flat(folder.config(), objects)
        return replace(config, run=config.run.starting_in(folder))

    def flat(self) -> Flat:
        """Return the flat configuration."""
        values = self.run.flat() | {
            "grid": [f"{name}={text}" for name, text in self.grid.items()],
            "search": [f"{name}={ends}" for name, ends in self.search.items()],
            "trials": self.trials,
            "metric": self.metric,
            "tuning_seeds": list(self.tuning_seeds),
        }
        return {name: value for name, value in values.items() if value is not None}

    def parameters(self, spec: MethodSpec) -> list[str]:
        """Return the grid values that apply to a method."""
        return spec.parameters(self.run.hyper_parameters)

    def points(self, spec: MethodSpec) -> list[Point]:
        """Return the grid points of a method, over those hyper-parameters that it has."""
        own = self.parameters(spec)
        axes = {
            name: spec.parse_several(name, text, self.run.hyper_parameters)
            for name, text in self.grid.items()
            if name in own
        }
        combinations = [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]
        return [self.point(spec, values) for values in combinations]

    def ranges(self, spec: MethodSpec) -> dict[str, Range]:
        """Return the ranges that apply to a method."""
        own = self.parameters(spec)
        return {name: ends for name, ends in self.search.items() if name in own}

    def corners(self, spec: MethodSpec) -> list[Point]:
        """Return a method at the low and at the high ends of its ranges."""
        ranges = self.ranges(spec)
        low, high = ({name: ends[end] for name, ends in ranges.items()} for end in (0, 1))
        return [self.point(spec, low), self.point(spec, high)]

    def point(self, spec: MethodSpec, values: Mapping[str, Any]) -> Point:
        """Return a method with some of its settings replaced."""
        return Point(spec.build(self.run.hyper_parameters, values), values)


class Tried(NamedTuple):
    """A setting, its tuning runs and their score (higher is better)."""

    point: Point
    traces: list[Trace]
    score: float


Execute = Callable[[Sequence[Unit]], Results]
Score = Callable[[Sequence[Trace]], float]


def try_grid(config: SweepConfig, task: Task, execute: Execute, score: Score) -> dict[str, list[Tried]]:
    """Run every grid point and return the outcomes by method."""
    groups: list[list[Point]] = []
    units: list[Unit] = []
    for spec in config.run.methods:
        for number, group in enumerate(stackable(config.points(spec))):
            name, codec = f"tune {spec.text} {number}", group[0].method.codec
            algorithms = [point.method.algorithm for point in group]
            units.append(config.run.unit(name, task, algorithms, config.tuning_seeds, codec, method=spec.text))
            groups.append(group)
    found = execute(units)
    tried: dict[str, list[Tried]] = {}
    for unit, group in zip(units, groups, strict=True):
        for point, traces in zip(group, found[unit.name], strict=True):
            tried.setdefault(str(unit.labels["method"]), []).append(Tried(point, traces, score(traces)))
    return tried


def try_search(
    config: SweepConfig, task: Task, database: Path, execute: Execute, score: Score
) -> dict[str, list[Tried]]:
    """Run the points that Optuna suggests, the same number for each method, and return the outcomes by method."""
    tried: dict[str, list[Tried]] = {}
    for spec in config.run.methods:

        def attempt(number: int, values: dict[str, float], spec: MethodSpec = spec) -> float:
            point = config.point(spec, values)
            algorithm, codec = point.method
            unit = config.run.unit(f"trial {number} {spec.text}", task, [algorithm], config.tuning_seeds, codec)
            traces = execute([unit])[unit.name][0]
            tried.setdefault(spec.text, []).append(Tried(point, traces, score(traces)))
            return tried[spec.text][-1].score

        optimise(database, spec.text, config.ranges(spec), config.trials, attempt)
    return tried


def stackable(points: Iterable[Point]) -> list[list[Point]]:
    """Group settings that differ only in real numbers, which can be stacked."""
    groups: dict[str, list[Point]] = {}
    for point in points:
        groups.setdefault(repr((_fixed(point.method.algorithm), point.method.codec)), []).append(point)
    return list(groups.values())


def _fixed(algorithm: Algorithm) -> Any:
    """Return what the settings of a grid have in common: the methods and all but their real numbers."""
    values = {
        name: _fixed(value) if isinstance(value, Algorithm) else value
        for name, value in vars(algorithm).items()
        if not isinstance(value, float) and not callable(value)
    }
    return type(algorithm), values


def _assignments(option: str, values: Flat, form: str) -> list[tuple[str, str]]:
    """Parse an option such as `--grid a=1,2 b=3,4` or `--grid 'a=1,2; b=3,4'`."""
    found = []
    for text in (part.strip() for given in as_list(values.get(option) or []) for part in given.split(";")):
        name, equals, value = text.partition("=")
        if not equals:
            raise InvalidValue(option, text, form)
        found.append((name.strip(), value.strip()))
    return found


_SWEEP = {item.name for item in fields(SweepConfig)}
"""Names in a flat configuration that are not the run's, whatever a method's hyper-parameters are called."""
