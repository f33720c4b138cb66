"""The configuration of a run: one typed object, made from options or from a flat YAML file."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import torch
from jsonargparse import ArgumentParser

from fedcso.algorithms import MAIN
from fedcso.codecs import SEND_U
from fedcso.core import user_code
from fedcso.core.algorithm import Algorithm
from fedcso.core.codec import Codec, full
from fedcso.core.errors import FedcsoError, InvalidValue, UnknownName, require
from fedcso.core.estimator import Estimator
from fedcso.core.plan import Plan
from fedcso.core.recommended import recommended
from fedcso.core.task import Task
from fedcso.engines import ENGINES
from fedcso.engines.job import Job
from fedcso.estimators import AUTO
from fedcso.runs import initial_model, launch
from fedcso.runs.callbacks import Rhythm
from fedcso.runs.folder import RunFolder
from fedcso.runs.given import NOTHING, Given
from fedcso.runs.methods import Method, MethodSpec, build_all, owners, parse_methods
from fedcso.runs.specs import TaskMaker, find_estimator, make_task, task_maker
from fedcso.runs.study import Study, Unit
from fedcso.runs.tracking import require_tracker

Flat = dict[str, Any]
"""Settings as in options and config.yaml, where all names are on one level."""

PLAN = [size.name for size in fields(Plan)]
OWN_OPTIONS = ("net",)
"""Options of problems that may refer to an object in a user's file."""

HOW = ("engine", "ranks", "estimator", "device", "init", "fresh_last_layer", "track", "out", "name")
"""Fields with the same name and value in a flat configuration."""

MOST_SEEDS = 100_000

REMOVED = {
    "inner_batch_most": "m no longer changes during a run; set inner_batch, or reduce the bias by another estimator"
}
"""Options of earlier versions that runs can't do without: what to do instead."""


@dataclass(frozen=True)
class RunConfig:
    """All that a run depends on.

    In options and in the config.yaml of a run folder everything stands on one level: what the problem is asked for,
    the hyper-parameters of the methods, the sizes of the plan, and the rest. `from_flat` reads that, `flat` writes it.
    """

    problem: str
    """A name in `fedcso.problems.PROBLEMS`, or your own problem as `path.py:name`."""
    problem_options: Mapping[str, Any] = field(default_factory=dict)
    methods: tuple[MethodSpec, ...] = field(default_factory=lambda: parse_methods(MAIN))
    hyper_parameters: Mapping[str, Any] = field(default_factory=dict)
    """Values for every method that has these hyper-parameters and does not set them itself."""
    plan: Plan = Plan()  # noqa: RUF009 - frozen
    seeds: tuple[int, ...] = (0, 1, 2)
    engine: str = "simulation"
    ranks: int | None = None
    """The number of processes of the engine distributed; one per core by default."""
    estimator: str = "plain"
    """A name in `ESTIMATORS`, your own as `path.py:name`, or `auto` until the run starts (`runs.auto_estimator`)."""
    device: str = "cpu"
    init: str | None = None
    """The model to start from (`fedcso.runs.initial_model`); the problem's own x_0 by default."""
    fresh_last_layer: bool = False
    """True to start from `init` with a new last layer."""
    checkpoints: Rhythm = Rhythm()  # noqa: RUF009 - frozen
    track: str = "none"
    out: str = "runs"
    """The folder in which run folders are created."""
    name: str | None = None
    """Part of the run folder's name; the problem's name by default."""
    root: Path = user_code.HERE
    """The folder to which paths of the user's files are relative."""
    given: Given = NOTHING
    """Objects of a program that stand for names in the configuration."""

    def __post_init__(self) -> None:
        if self.engine not in ENGINES:
            raise UnknownName(ENGINES.kind, self.engine, ENGINES)
        if self.estimator != AUTO:
            self.find_estimator()
        if self.name is not None:
            require("name", self.name, lambda n: re.fullmatch(r"[\w.=-]+", n), "made of letters, digits and - _ . =")
        if self.ranks is not None:
            launch.require_over_ranks(self.engine, self.ranks)
        if self.fresh_last_layer and self.init is None:
            raise InvalidValue("fresh_last_layer", True, "left out without init, the model to start from")

    @classmethod
    def from_flat(cls, values: Flat, root: Path = user_code.HERE, objects: Given = NOTHING) -> "RunConfig":
        """Read a flat configuration; missing settings have their defaults, unknown names are ignored."""
        given = {name: value for name, value in values.items() if value is not None}
        if "problem" not in given:
            raise FedcsoError(
                "problem is missing: name one, as in `problem: invariant_logistic` (see fedcso list problems)"
            )
        for name, instead in REMOVED.items():
            if name in given:
                raise InvalidValue(name, given[name], f"left out: {instead}")
        maker = objects.maker(str(given["problem"]), root)
        usual = recommended(maker).methods or MAIN
        methods = objects.parse_methods(as_list(given.get("algorithm", list(usual))), root)
        of_problem = arguments_of(maker)
        of_methods = {*owners(methods), SEND_U} - of_problem - _RESERVED
        return cls(
            problem=str(given["problem"]),
            problem_options={name: value for name, value in given.items() if name in of_problem},
            methods=methods,
            hyper_parameters={name: value for name, value in given.items() if name in of_methods},
            plan=Plan(**{name: given[name] for name in PLAN if name in given}),
            seeds=tuple(parse_seeds(given.get("seeds", 3))),
            checkpoints=Rhythm(given.get("checkpoint_rounds", 0), given.get("checkpoint_seconds", 30.0)),
            **{name: given[name] for name in HOW if name in given},
            root=root,
            given=objects,
        )

    @classmethod
    def of(cls, folder: RunFolder, objects: Given = NOTHING) -> "RunConfig":
        """Read the configuration of a run folder; raise if the user's files have changed since the run started."""
        folder.require_same_sources()
        return cls.from_flat(folder.config(), objects=objects).starting_in(folder)

    def starting_in(self, folder: RunFolder) -> "RunConfig":
        """Return the configuration with the folder's copy of the initial weights, if it has one."""
        copy = folder.path / initial_model.FILE
        return replace(self, init=str(copy.resolve())) if copy.is_file() else self

    def flat(self) -> Flat:
        """Return the flat configuration."""
        values = {
            "problem": self.problem,
            "algorithm": [method.text for method in self.methods],
            "seeds": list(self.seeds),
            **self.hyper_parameters,
            **asdict(self.plan),
            **self.problem_options,
            **{name: getattr(self, name) for name in ("engine", "ranks", "estimator", "device", "init")},
            "fresh_last_layer": self.fresh_last_layer or None,
            "checkpoint_rounds": self.checkpoints.rounds,
            "checkpoint_seconds": self.checkpoints.seconds,
            **{name: getattr(self, name) for name in ("track", "out", "name")},
        }
        return {name: value for name, value in values.items() if value is not None}

    def require_available(self) -> None:
        """Raise if the device or the tracker is not available."""
        try:
            torch.empty(0, device=self.device)
        except (RuntimeError, AssertionError) as error:
            reason = str(error).splitlines()[0]
            raise InvalidValue("device", self.device, f"an available torch device ({reason})") from None
        require_tracker(self.track)

    @property
    def title(self) -> str:
        """The name for the run folder."""
        return self.name or Path(self.problem.partition(":")[0]).stem.strip("<>")

    # --------------------------------------------------------------------------------- the objects

    def task(self) -> Task:
        """Create the task: the problem and its data."""
        own_options = {name: user_code.join_root(value, self.root) for name, value in self._own_options().items()}
        options = {**self.problem_options, **own_options}
        task = make_task(self.given.maker(self.problem, self.root), options, self.problem)
        task = replace(task, notes=[*task.notes, *self._remarks(task)])
        if self.init is None:
            return task
        return task.starting_from(initial_model.read_initial(self.init, self.root, self.fresh_last_layer))

    def _remarks(self, task: Task) -> list[str]:
        """Return what users should know of the methods and the plan on this task."""
        fitting, refusals = self._fitting(task)
        remarks = [f"{name} is left out: {reason}" for name, reason in refusals.items() if fitting]
        remarks += [task.remark(), *(algorithm.remark(task.problem) for algorithm, _ in fitting.values())]
        if self.plan.weights is None and task.weights == "size" and len(task.clients) > 1:
            remarks.append("sites count by the number of their training rows; for equal weights: --weights uniform")
        return [remark for remark in dict.fromkeys(remarks) if remark]

    def _own_options(self) -> dict[str, str]:
        given = {name: str(self.problem_options[name]) for name in OWN_OPTIONS if name in self.problem_options}
        return {name: value for name, value in given.items() if user_code.is_own(value)}

    def built(self) -> dict[str, Method]:
        """Create the methods, by the names in `algorithm`."""
        return build_all(self.methods, self.hyper_parameters)

    def find_estimator(self) -> Estimator:
        """Return the estimator, which must be settled; raise if there is none of its name."""
        return find_estimator(self.estimator, self.root)

    def _method_names(self) -> list[str]:
        """Return the names of the methods, and of those inside them."""
        return [level.name for method in self.methods for level in method.levels(self.hyper_parameters)]

    def sources(self) -> list[user_code.Source]:
        """Return the user's files that the run depends on."""
        names = {"problem": [self.problem], "algorithm": self._method_names(), "estimator": [self.estimator]}
        names |= {name: [value] for name, value in self._own_options().items()}
        found = [
            user_code.read_source(kind, name, self.root)
            for kind, some in names.items()
            for name in some
            if user_code.is_own(name)
        ]
        return list(dict.fromkeys(found))

    def unit(
        self,
        name: str,
        task: Task,
        algorithms: Sequence[Algorithm],
        seeds: Sequence[int],
        codec: Codec = full,
        **labels: str,
    ) -> Unit:
        """Return a unit of work for settings of one method and some seeds; raise if they can't be combined."""
        estimator = self.find_estimator()
        for algorithm in algorithms:
            Job(algorithm, task, self.plan, estimator=estimator, codec=codec)
        return Unit(name, task, self.plan, algorithms, seeds, estimator, self.engine, self.device, codec, labels)

    def units(self, task: Task) -> list[Unit]:
        """Return a unit of work for each method that fits the task; raise the first refusal if none does."""
        fitting, refusals = self._fitting(task)
        if not fitting:
            raise next(iter(refusals.values()))
        return [
            self.unit(name, task, [algorithm], self.seeds, codec, method=name)
            for name, (algorithm, codec) in fitting.items()
        ]

    def _fitting(self, task: Task) -> tuple[dict[str, Method], dict[str, FedcsoError]]:
        """Return the methods that fit the task, and why the others don't."""
        fitting, refusals = {}, {}
        for name, method in self.built().items():
            try:
                self.unit(name, task, [method.algorithm], self.seeds, method.codec)
                fitting[name] = method
            except FedcsoError as reason:
                refusals[name] = reason
        return fitting, refusals

    def study(self, units: Sequence[Unit], folder: Path) -> Study:
        """Return a study whose checkpoints are written to a run folder."""
        return Study(units, folder / "checkpoints", self.checkpoints)


def option_names(problem: str, root: Path = user_code.HERE) -> set[str]:
    """Return the names of a problem's options, including those passed on as **keywords."""
    return arguments_of(task_maker(problem, root))


def arguments_of(maker: TaskMaker) -> set[str]:
    """Return the names of the arguments of a task function, including those passed on as **keywords."""
    return set(ArgumentParser().add_function_arguments(maker))


def as_list(value: list[str] | str) -> list[str]:
    """Return a list; a single name becomes a list of one."""
    return [value] if isinstance(value, str) else value


def parse_seeds(value: Any, field: str = "seeds") -> list[int]:
    """Return the seeds 0, 1, 2 for `3`, or the seeds themselves: `5,6,7`."""
    try:
        if isinstance(value, str):
            value = (
                [int(part) for part in value.strip("[] ").split(",")] if "," in value or "[" in value else int(value)
            )
        some = range(min(value, MOST_SEEDS + 1)) if isinstance(value, int) else value
        chosen = [int(seed) for seed in some]
    except (TypeError, ValueError, OverflowError):
        chosen = []
    require(field, value, lambda _: len(chosen) <= MOST_SEEDS, f"at most {MOST_SEEDS} seeds")
    if not chosen or min(chosen) < 0 or len(set(chosen)) < len(chosen):
        raise InvalidValue(field, value, "a number of seeds (3 for 0, 1, 2), or different seeds: 5,6,7")
    return chosen


_RESERVED = {*PLAN, *HOW, "problem", "algorithm", "seeds", "checkpoint_rounds", "checkpoint_seconds", "command"}
"""Names that are options already: a hyper-parameter with such a name is set as NAME(option=value)."""
