"""Choose hyper-parameters by a grid or a search: validation data decide, test data are touched once.

A grid is run stacked where the model is small enough, so that it costs little more than one setting. A
search (needs the extra `sweep`: Optuna) keeps its study in the folder as SQLite: stop it, go on with
`fedcso resume`. The metric by which the problem's judge selects decides, on validation data; where there are none, F,
if the problem knows it exactly. The chosen setting is then run on seeds of its own and judged on the test data.

examples:
  fedcso sweep invariant_logistic --algorithm FCSG-M --grid learning_rate=0.01,0.005 momentum=0.1,0.5
  fedcso sweep nested_quadratic --algorithm FCSG FCSG-M --grid learning_rate=0.1,0.01 --metric loss
  fedcso sweep invariant_logistic --algorithm FCSG-M --search learning_rate=0.0001:0.1 --trials 20
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from fedcso.cli.options import read_options
from fedcso.cli.parser import Parser
from fedcso.core import metrics
from fedcso.core.errors import FedcsoError, UnknownName, is_number
from fedcso.core.metric import Metric
from fedcso.core.metrics import mean_and_interval
from fedcso.core.task import Task
from fedcso.core.trace import Trace
from fedcso.engines.choice import deciding_metric
from fedcso.engines.server import TRAIN_LOSS
from fedcso.reports import outputs, tables
from fedcso.reports.terminal import conclude, show
from fedcso.runs.execute import execute_study, same_data
from fedcso.runs.folder import RunFolder
from fedcso.runs.search import require_optuna
from fedcso.runs.specs import spell
from fedcso.runs.study import Results, Unit
from fedcso.runs.tuning import SweepConfig, Tried, try_grid, try_search

HELP = "choose hyper-parameters on validation data: a grid or a search"


def main(arguments: list[str]) -> int:
    """Carry out a new sweep."""
    config = SweepConfig.from_flat(read_options("sweep", str(__doc__), arguments, _options))
    config.run.require_available()
    task = config.run.task()
    _check(config, task)
    settings = {"command": "sweep"} | config.flat()
    data, sources = {"digest": task.digest()}, config.run.sources()
    folder = RunFolder.create(Path(config.run.out), config.run.name or "sweep", settings, data, sources)
    return _carry_out(folder, config, task)


def resume(folder: RunFolder) -> int:
    """Carry out what is left of a sweep."""
    config = SweepConfig.of(folder)
    return _carry_out(folder, config, same_data(folder, config.run.task()))


def _options(parser: Parser) -> None:
    group = parser.add_argument_group("what is tried, and what decides")
    group.add_argument("--grid", type=list[str] | str, default=[], metavar="NAME=V,V", help="values to try")
    group.add_argument("--search", type=list[str] | str, default=[], metavar="NAME=LOW:HIGH", help="a range")
    group.add_argument("--trials", type=int, default=20, help="how many points a search tries")
    group.add_argument("--metric", help="what decides, on validation data; the judge's choice by default")
    group.add_argument(
        "--tuning_seeds", type=list[int] | int | str, default=[1000, 1001, 1002], help="seeds of the tuning runs"
    )


def _check(config: SweepConfig, task: Task) -> None:
    """Raise mistakes before a folder is made."""
    if config.search:
        require_optuna()
    for spec in config.run.methods:
        for algorithm, codec in (p.method for p in (config.corners if config.search else config.points)(spec)):
            config.run.unit(spec.text, task, [algorithm], config.tuning_seeds, codec)
    metric_of(config, task)


def _carry_out(folder: RunFolder, config: SweepConfig, task: Task) -> int:
    metric = metric_of(config, task)
    tried = _try(folder, config, task, metric)
    ranked = {name: sorted(some, key=lambda one: one.score, reverse=True) for name, some in tried.items()}
    table = [_row(name, one, metric) for name, some in ranked.items() for one in some]
    folder.write("sweep.csv", tables.as_csv(tables.flat(table)))
    show(table, title=f"{metric.title}, best first")
    chosen = [(spec, ranked[spec.text][0].point.method) for spec in config.run.methods]
    best = {spec.spell(method): method for spec, method in chosen}
    folder.write("chosen.yaml", yaml.safe_dump({"algorithm": list(best)}, allow_unicode=True))
    final = [config.run.unit(name, task, [one], config.run.seeds, codec) for name, (one, codec) in best.items()]
    found = _execute(folder, config, final)
    summary = outputs.write_all(folder, found, config.run.seeds, task)
    print("test data, chosen settings:")
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


def metric_of(config: SweepConfig, task: Task) -> Metric:
    """Return the metric that decides: the one asked for, else the one that also chooses models; never on test data."""
    task = task.for_tuning()
    if config.metric is None:
        if (metric := deciding_metric(task)) == TRAIN_LOSS:
            lacks = "validation data" if task.validation is None else "a judge that declares a metric"
            raise FedcsoError(f"the problem {config.run.problem!r} has no {lacks} to choose by; --metric names another")
        return metric
    there = [metric for metric in (*metrics.declare(task), TRAIN_LOSS) if metric.higher_is_better is not None]
    known = {metric.name: metric for metric in there}
    if task.validation is not None:  # what the judge measures is asked for by its own name
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
    """Return a setting as it stands in the table."""
    if is_number(value):
        return f"{value:g}"
    return value if isinstance(value, str) else spell(value)
