"""Tune: try settings on validation data, choose, and evaluate the chosen ones."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

import yaml

from fedcso.core.errors import FedcsoError, UnknownName, is_number
from fedcso.core.evaluation import declare_metrics
from fedcso.core.intervals import mean_and_interval
from fedcso.core.metric import Metric
from fedcso.core.task import Task
from fedcso.core.trace import Trace
from fedcso.engines.choice import deciding_metric
from fedcso.engines.server import TRAIN_LOSS
from fedcso.reports import outputs, tables
from fedcso.runs.auto_estimator import settle_estimator
from fedcso.runs.config import Flat
from fedcso.runs.execute import describe_data, execute_study, mark_end, needed_files, same_data
from fedcso.runs.folder import RunFolder
from fedcso.runs.given import NOTHING, Given
from fedcso.runs.options import add_sweep_options
from fedcso.runs.search import require_optuna
from fedcso.runs.specs import spell
from fedcso.runs.study import Results, Unit
from fedcso.runs.tuning import SweepConfig, Tried, try_grid, try_search
from fedcso.studies.arguments import Algorithms, read_arguments
from fedcso.studies.folders import require_problem
from fedcso.studies.results import TuningResult


def tune(
    task: str | PathLike[str] | Task,
    algorithms: Algorithms | None = None,
    *,
    grid: Mapping[str, Sequence[Any]] | None = None,
    search: Mapping[str, tuple[float, float]] | None = None,
    seeds: int | Sequence[int] = 3,
    say: Callable[[str], None] = print,
    **options: Any,
) -> TuningResult:
    """Choose hyper-parameters on validation data, then run the chosen ones with other seeds and on test data.

    This is `fedcso sweep` in Python.

    Args:
        task: the name of a problem, your own as `path.py:name`, or a `fedcso.Task`
        algorithms: methods by name or as objects, as for `fedcso.run`; an object's own settings are not tuned, so name
            the method to tune them
        grid: the values to try, `{"learning_rate": [0.01, 0.1], "momentum": [0.1, 0.5]}`
        search: ranges for an Optuna search instead, `{"learning_rate": (1e-4, 0.1)}`
        seeds: seeds of the final runs
        say: called with notes about the data and settings
        options: trials, metric, tuning_seeds, and everything that `fedcso.run` takes
    """
    tried = {
        "grid": [f"{name}={','.join(map(_as_text, values))}" for name, values in (grid or {}).items()],
        "search": [f"{name}={low}:{high}" for name, (low, high) in (search or {}).items()],
    }
    flat, objects = read_arguments("sweep", task, algorithms, {"seeds": seeds, **tried, **options}, add_sweep_options)
    return start(flat, objects, say)


def start(settings: Flat, objects: Given = NOTHING, say: Callable[[str], None] = print) -> TuningResult:
    """Start a new sweep with complete settings."""
    config = SweepConfig.from_flat(settings, objects)
    config.run.require_available()
    task = config.run.task()
    settled = settle_estimator(config.run, task)
    config = replace(config, run=settled.config)
    _check(config, task)
    for note in settled.notes():
        say(f"note    {note}")
    complete, files = {"command": "sweep"} | config.flat(), needed_files(task) | settled.files()
    name, sources = config.run.name or "sweep", config.run.sources()
    folder = RunFolder.create(Path(config.run.out), name, complete, describe_data(task), sources, files)
    return _carry_out(folder, config, task)


def resume_tuning(folder: RunFolder, objects: Given = NOTHING) -> TuningResult:
    """Carry out what is left of a sweep."""
    require_problem(folder)
    config = SweepConfig.of(folder, objects)
    return _carry_out(folder, config, same_data(folder, config.run.task()))


def _check(config: SweepConfig, task: Task) -> None:
    """Raise `FedcsoError` if something does not fit together, before a folder is created."""
    if config.search:
        require_optuna()
    for spec in config.run.methods:
        for algorithm, codec in (p.method for p in (config.corners if config.search else config.points)(spec)):
            config.run.unit(spec.text, task, [algorithm], config.tuning_seeds, codec)
    choose_metric(config, task)


def _carry_out(folder: RunFolder, config: SweepConfig, task: Task) -> TuningResult:
    metric = choose_metric(config, task)
    tried = _try(folder, config, task, metric)
    ranked = {name: sorted(some, key=lambda one: one.score, reverse=True) for name, some in tried.items()}
    table = [_row(name, one, metric) for name, some in ranked.items() for one in some]
    folder.write("sweep.csv", tables.as_csv(tables.flat(table)))
    chosen = [(spec, ranked[spec.text][0].point.method) for spec in config.run.methods]
    best = {spec.spell(method, config.run.hyper_parameters): method for spec, method in chosen}
    folder.write("chosen.yaml", yaml.safe_dump({"algorithm": list(best)}, allow_unicode=True))
    final = [config.run.unit(name, task, [one], config.run.seeds, codec) for name, (one, codec) in best.items()]
    found = _execute(folder, config, final)
    outputs.write_all(folder, found, config.run.seeds, task)
    mark_end(folder, found)
    return TuningResult(folder.path)


def _try(folder: RunFolder, config: SweepConfig, task: Task, metric: Metric) -> dict[str, list[Tried]]:
    def execute(units: Sequence[Unit]) -> Results:
        return _execute(folder, config, units)

    def scored(traces: Sequence[Trace]) -> float:
        return score(traces, metric)

    if config.search:
        return try_search(config, task.for_tuning(), folder.path / "optuna.db", execute, scored)
    return try_grid(config, task.for_tuning(), execute, scored)


def _execute(folder: RunFolder, config: SweepConfig, units: Sequence[Unit]) -> Results:
    return execute_study(folder, config.run.study(units, folder.path), config.run.track)


def score(traces: Sequence[Trace], metric: Metric) -> float:
    """Return the deciding metric at the end of the runs, mean over seeds, signed so that higher is better."""
    if any(trace.failure for trace in traces):
        return float("-inf")
    mean, _ = mean_and_interval([trace.rows[-1][metric.name] for trace in traces])
    return mean if metric.higher_is_better else -mean


def choose_metric(config: SweepConfig, task: Task) -> Metric:
    """Return the metric that decides: the one asked for, or the one that chooses models; never one on test data."""
    task = task.for_tuning()
    if config.metric is None:
        if (metric := deciding_metric(task)) == TRAIN_LOSS:
            lacks = "validation data" if task.validation is None else "a judge that declares a metric"
            raise FedcsoError(
                f"the problem {config.run.problem!r} has no {lacks} to choose by; choose a metric with --metric"
            )
        return metric
    there = [metric for metric in (*declare_metrics(task), TRAIN_LOSS) if metric.higher_is_better is not None]
    known = {metric.name: metric for metric in there}
    if task.validation is not None:  # the judge's metrics can be named without the prefix `validation_`
        own = {metric.name: metric.on_validation() for metric in task.judge.metrics}
        known |= {name: metric for name, metric in own.items() if metric.name in known}
    if config.metric not in known:
        raise UnknownName("metric", config.metric, known)
    return known[config.metric]


def _row(name: str, tried: Tried, metric: Metric) -> dict[str, Any]:
    broken = [trace for trace in tried.traces if trace.failure]
    value = tables.Estimate(*mean_and_interval([trace.rows[-1][metric.name] for trace in tried.traces]))
    settings = tried.point.method.settings | dict(tried.point.values)
    options = {key: _shown(value) for key, value in settings.items()}
    return {"algorithm": name, **options, metric.title: "broke off" if broken else value}


def _as_text(value: Any) -> str:
    """Return a value of a grid as it is written in an option."""
    return value if isinstance(value, str) else spell(value)


def _shown(value: Any) -> str:
    """Return a setting as the table shows it."""
    if is_number(value):
        return f"{value:g}"
    return _as_text(value)
