"""Choose hyper-parameters by a grid or a search: validation data decide, test data are touched once.

A grid is run stacked where the model is small enough, so that it costs little more than one setting. A
search (needs the extra `sweep`: Optuna) keeps its study in the folder as SQLite: stop it, go on with
`fedcso resume`. The metric by which the problem's judge selects decides, on validation data; where there are none, F,
if the problem knows it exactly. The chosen setting is then run on seeds of its own and judged on the test data.

examples:
  fedcso sweep invariant_logistic --algorithm FCSG-M --grid learning_rate=0.01,0.005 --grid momentum=0.1,0.5
  fedcso sweep nested_quadratic --algorithm FCSG FCSG-M --grid learning_rate=0.1,0.01 --metric loss
  fedcso sweep invariant_logistic --algorithm FCSG-M --search learning_rate=0.0001:0.1 --trials 20
"""

import itertools
from pathlib import Path
from typing import Any

import yaml

from fedcso.cli.options import read_options
from fedcso.cli.parser import Parser
from fedcso.core import metrics
from fedcso.core.algorithm import Algorithm
from fedcso.core.errors import FedcsoError, InvalidValue, UnknownName, require_count
from fedcso.core.metric import Metric
from fedcso.core.metrics import mean_and_interval
from fedcso.core.task import Task
from fedcso.core.trace import Trace
from fedcso.engines.choice import deciding_metric
from fedcso.engines.job import Job
from fedcso.engines.server import TRAIN_LOSS
from fedcso.estimators import ESTIMATORS
from fedcso.reports import outputs, tables
from fedcso.reports.terminal import conclude, show
from fedcso.runs.config import (
    HYPER,
    Config,
    algorithm_of,
    as_list,
    hyper_of,
    methods_of,
    plan_of,
    seeds,
    spec_of,
    study_of,
    task_of,
)
from fedcso.runs.execute import execute_study, same_data
from fedcso.runs.folder import RunFolder
from fedcso.runs.search import optimise, parse_range, require_optuna
from fedcso.runs.specs import parse_values
from fedcso.runs.study import Unit

HELP = "choose hyper-parameters on validation data: a grid or a search"


def main(arguments: list[str]) -> int:
    """A new sweep."""
    config = read_options("sweep", str(__doc__), arguments, _options)
    config |= {name: as_list(config[name]) for name in ("grid", "search")}
    if bool(config["grid"]) == bool(config["search"]):
        raise FedcsoError("say what to try: --grid NAME=VALUE,VALUE (one or several), or --search NAME=LOW:HIGH")
    config["tuning_seeds"] = seeds(config["tuning_seeds"], "tuning_seeds")
    task = task_of(config)
    _check(config, task)
    folder = RunFolder.create(Path(config["out"]), config.get("name") or "sweep", config, {"digest": task.digest()})
    return resume(folder, task)


def _check(config: Config, task: Task) -> None:
    """Mistakes show before a folder is made."""
    require_count("trials", config["trials"])
    tried = {spec: list(every) for spec, every in points(config).items()}
    if config["search"]:
        require_optuna()
        tried = {spec: every + _corners(config, spec) for spec, every in tried.items()}
    plan = plan_of(config)
    for spec, (_, codec) in methods_of(config).items():
        for algorithm in tried[spec]:
            # Refuses what does not go together.
            Job(algorithm, task, plan, estimator=ESTIMATORS[config["estimator"]], codec=codec)
    metric_of(config, task)


def _corners(config: Config, spec: str) -> list[Algorithm]:
    """A method at the low and at the high ends of the ranges that are searched."""
    ranges = dict(parse_range(text) for text in config["search"])
    own = {name: bounds for name, bounds in ranges.items() if name in hyper_of(spec)}
    if not own:
        raise InvalidValue("search", config["search"], f"ranges for hyper-parameters of {spec}")
    return [algorithm_of(config, spec, {name: bounds[end] for name, bounds in own.items()}) for end in (0, 1)]


def _options(parser: Parser) -> None:
    group = parser.add_argument_group("what is tried, and what decides")
    group.add_argument("--grid", type=list[str] | str, default=[], metavar="NAME=V,V", help="values to try")
    group.add_argument("--search", type=list[str] | str, default=[], metavar="NAME=LOW:HIGH", help="a range")
    group.add_argument("--trials", type=int, default=20, help="how many points a search tries")
    group.add_argument("--metric", help="what decides, on validation data; the judge's choice by default")
    group.add_argument(
        "--tuning_seeds", type=list[int] | int | str, default=[1000, 1001, 1002], help="seeds of the tuning runs"
    )


def points(config: Config) -> dict[str, list[Algorithm]]:
    """By method, the settings of the grid; a method is tried with those of the values that it has."""
    axes: dict[str, list[Any]] = {}
    for text in config["grid"]:
        name, equals, values = text.partition("=")
        if name not in HYPER:
            raise UnknownName("hyper-parameter", name, HYPER)
        if not equals:
            raise InvalidValue("grid", text, "NAME=VALUE,VALUE")
        axes.setdefault(name, []).extend(parse_values(name, values))
    every: dict[str, list[Algorithm]] = {}
    for spec in config["algorithm"]:
        own = [name for name in axes if name in hyper_of(spec)]
        combinations = itertools.product(*(axes[name] for name in own))
        every[spec] = [algorithm_of(config, spec, dict(zip(own, values, strict=True))) for values in combinations]
    unused = [name for name in axes if not any(name in hyper_of(spec) for spec in every)]
    if unused:
        raise InvalidValue("grid", unused[0], f"a hyper-parameter of {', '.join(every)}")
    return every


def resume(folder: RunFolder, task: Task | None = None) -> int:
    """Carry out what is left of a sweep."""
    config = folder.config()
    task = task or same_data(folder, task_of(config))
    metric = metric_of(config, task)
    tried = _search(folder, config, task, metric) if config["search"] else _grid(folder, config, task, metric)
    chosen: dict[str, Algorithm] = {}
    table = []
    for name, outcomes in tried.items():
        ranked = sorted(outcomes, key=lambda outcome: outcome[1], reverse=True)
        chosen[name] = ranked[0][0]
        table += [_row(name, algorithm, traces, metric) for algorithm, _, traces in ranked]
    folder.write("sweep.csv", tables.as_csv(tables.flat(table)))
    show(table, title=f"{metric.title}, best first")
    codecs = {name: codec for name, (_, codec) in methods_of(config).items()}
    best = {name: spec_of(name, algorithm, codecs[name]) for name, algorithm in chosen.items()}
    folder.write("chosen.yaml", yaml.safe_dump({"algorithm": list(best.values())}, allow_unicode=True))
    final = [_unit(config, task, best[name], name, [one], config["seeds"]) for name, one in chosen.items()]
    found = execute_study(folder, study_of(config, final, folder.path), config["track"])
    summary = outputs.write_all(folder, found, config["seeds"], task)
    print("test data, chosen settings:")
    return conclude(folder, summary, found)


Outcome = tuple[Algorithm, float, list[Trace]]
"""A setting, its score (higher is better) and its tuning runs."""


def _grid(folder: RunFolder, config: Config, task: Task, metric: Metric) -> dict[str, list[Outcome]]:
    units = [
        _unit(config, task.for_tuning(), f"tune {name} {number}", name, group, config["tuning_seeds"])
        for name, every in points(config).items()
        for number, group in enumerate(_stackable(every))
    ]
    found = execute_study(folder, study_of(config, units, folder.path), config["track"])
    tried: dict[str, list[Outcome]] = {}
    for unit in units:
        name = unit.name.split(" ", 1)[1].rsplit(" ", 1)[0]
        for algorithm, traces in zip(unit.algorithms, found[unit.name], strict=True):
            tried.setdefault(name, []).append((algorithm, score(traces, metric), traces))
    return tried


def _stackable(every: list[Algorithm]) -> list[list[Algorithm]]:
    """Settings that differ in real numbers alone belong together; whole numbers can't be stacked."""
    groups: dict[str, list[Algorithm]] = {}
    for algorithm in every:
        fixed = {k: v for k, v in vars(algorithm).items() if not isinstance(v, float) and not callable(v)}
        groups.setdefault(repr(fixed), []).append(algorithm)
    return list(groups.values())


def _search(folder: RunFolder, config: Config, task: Task, metric: Metric) -> dict[str, list[Outcome]]:
    """Optuna's suggestions, one run after the other, for each method with the same number of trials."""
    tried: dict[str, list[Outcome]] = {}
    for spec in config["algorithm"]:

        def attempt(number: int, values: dict[str, float], spec: str = spec) -> float:
            algorithm = algorithm_of(config, spec, values)
            name = f"trial {number} {spec}"
            unit = _unit(config, task.for_tuning(), name, spec, [algorithm], config["tuning_seeds"])
            study = study_of(config, [unit], folder.path)
            traces = execute_study(folder, study, config["track"])[unit.name][0]
            value = score(traces, metric)
            tried.setdefault(spec, []).append((algorithm, value, traces))
            return value

        own = [text for text in config["search"] if parse_range(text)[0] in hyper_of(spec)]
        optimise(folder.path / "optuna.db", spec, own, config["trials"], attempt)
    return tried


def score(traces: list[Trace], metric: Metric) -> float:
    """The deciding metric at the end of the runs, mean over seeds, signed so that higher is better."""
    if any(trace.failure for trace in traces):
        return float("-inf")
    mean, _ = mean_and_interval([trace.rows[-1][metric.name] for trace in traces])
    return mean if metric.higher_is_better else -mean


def metric_of(config: Config, task: Task) -> Metric:
    """The metric that decides: the one that is asked for, else the one that also chooses models; never on test data."""
    task = task.for_tuning()
    wanted = config.get("metric")
    if wanted is None:
        if (metric := deciding_metric(task)) == TRAIN_LOSS:
            lacks = "validation data" if task.validation is None else "a judge that declares a metric"
            raise FedcsoError(f"the problem {config['problem']!r} has no {lacks} to choose by; --metric names another")
        return metric
    there = [metric for metric in (*metrics.declare(task), TRAIN_LOSS) if metric.higher_is_better is not None]
    known = {metric.name: metric for metric in there}
    if task.validation is not None:  # what the judge measures is asked for by its own name
        own = {metric.name: metric.on_validation() for metric in task.judge.metrics}
        known |= {name: metric for name, metric in own.items() if metric.name in known}
    if wanted not in known:
        raise UnknownName("metric", wanted, known)
    return known[wanted]


def _row(name: str, algorithm: Algorithm, traces: list[Trace], metric: Metric) -> dict[str, Any]:
    broken = [trace for trace in traces if trace.failure]
    value = tables.Estimate(*mean_and_interval([trace.rows[-1][metric.name] for trace in traces]))
    options = {key: str(value) if callable(value) else f"{value:g}" for key, value in vars(algorithm).items()}
    return {"algorithm": name, **options, metric.title: "broke off" if broken else value}


def _unit(config: Config, task: Task, name: str, spec: str, algorithms: list[Algorithm], seeds: list[int]) -> Unit:
    return Unit(
        name,
        task,
        plan_of(config),
        algorithms,
        seeds,
        ESTIMATORS[config["estimator"]],
        config["engine"],
        config["device"],
        methods_of(config)[spec].codec,
    )
