"""Carry out a sweep: try the settings, choose, and evaluate the chosen ones."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from fedcso.cli.folders import require_problem
from fedcso.core.errors import FedcsoError, UnknownName, is_number
from fedcso.core.evaluation import declare_metrics
from fedcso.core.intervals import mean_and_interval
from fedcso.core.metric import Metric
from fedcso.core.task import Task
from fedcso.core.trace import Trace
from fedcso.engines.choice import deciding_metric
from fedcso.engines.server import TRAIN_LOSS
from fedcso.reports import outputs, tables
from fedcso.reports.terminal import conclude, show
from fedcso.runs.auto_estimator import settle_estimator
from fedcso.runs.config import Flat
from fedcso.runs.execute import describe_data, execute_study, needed_files, same_data
from fedcso.runs.folder import RunFolder
from fedcso.runs.search import require_optuna
from fedcso.runs.specs import spell
from fedcso.runs.study import Results, Unit
from fedcso.runs.tuning import SweepConfig, Tried, try_grid, try_search


def start(settings: Flat) -> int:
    """Start a new sweep."""
    config = SweepConfig.from_flat(settings)
    config.run.require_available()
    task = config.run.task()
    settled = settle_estimator(config.run, task)
    config = replace(config, run=settled.config)
    _check(config, task)
    settled.tell()
    complete, files = {"command": "sweep"} | config.flat(), needed_files(task) | settled.files()
    name, sources = config.run.name or "sweep", config.run.sources()
    folder = RunFolder.create(Path(config.run.out), name, complete, describe_data(task), sources, files)
    return _carry_out(folder, config, task)


def resume(folder: RunFolder) -> int:
    """Carry out what is left of a sweep."""
    require_problem(folder)
    config = SweepConfig.of(folder)
    return _carry_out(folder, config, same_data(folder, config.run.task()))


def _check(config: SweepConfig, task: Task) -> None:
    """Raise `FedcsoError` if something does not fit together, before a folder is created."""
    if config.search:
        require_optuna()
    for spec in config.run.methods:
        for algorithm, codec in (p.method for p in (config.corners if config.search else config.points)(spec)):
            config.run.unit(spec.text, task, [algorithm], config.tuning_seeds, codec)
    choose_metric(config, task)


def _carry_out(folder: RunFolder, config: SweepConfig, task: Task) -> int:
    metric = choose_metric(config, task)
    tried = _try(folder, config, task, metric)
    ranked = {name: sorted(some, key=lambda one: one.score, reverse=True) for name, some in tried.items()}
    table = [_row(name, one, metric) for name, some in ranked.items() for one in some]
    folder.write("sweep.csv", tables.as_csv(tables.flat(table)))
    show(table, title=f"{metric.title}, best first")
    chosen = [(spec, ranked[spec.text][0].point.method) for spec in config.run.methods]
    best = {spec.spell(method, config.run.hyper_parameters): method for spec, method in chosen}
    folder.write("chosen.yaml", yaml.safe_dump({"algorithm": list(best)}, allow_unicode=True))
    final = [config.run.unit(name, task, [one], config.run.seeds, codec) for name, (one, codec) in best.items()]
    found = _execute(folder, config, final)
    summary = outputs.write_all(folder, found, config.run.seeds, task)
    print("chosen settings, on test data:")
    return conclude(folder, summary, found)


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


def _shown(value: Any) -> str:
    """Return a setting as the table shows it."""
    if is_number(value):
        return f"{value:g}"
    return value if isinstance(value, str) else spell(value)
