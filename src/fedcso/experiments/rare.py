"""Average precision against the share of positives, on pictures and tables: where does each objective win?

All methods have the same network, the same number of examples per step, and the same learning rates to choose from on
validation data, which also choose the iterate. The test data are looked at once, at the end.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from fedcso.core.task import Task
from fedcso.core.trace import Trace
from fedcso.engines.choice import choose, deciding_metric
from fedcso.experiments import rare_report
from fedcso.experiments.experiment import Experiment, Runner
from fedcso.experiments.rare_positives import METHODS, build
from fedcso.experiments.rare_settings import RareSettings, settings
from fedcso.experiments.rare_tasks import Thinned, count_test, for_run, measure_test, pose, thin
from fedcso.experiments.reproduction import conclude
from fedcso.problems.at_share import AT_SHARE
from fedcso.problems.scores import AVERAGE_PRECISION
from fedcso.reports import tables
from fedcso.runs.folder import RunFolder
from fedcso.runs.study import Unit


class Run(NamedTuple):
    """A run with a learning rate."""

    rate: float
    trace: Trace
    validated: float
    """The deciding metric of the chosen iterate; −∞ if the run failed."""


def execute(folder: RunFolder, config: RareSettings) -> None:
    """Tune and run what is left, draw the figures and check the statements."""
    run = Runner(folder, config)
    outcomes: list[dict[str, Any]] = []
    curves: list[dict[str, Any]] = []
    tried: list[dict[str, Any]] = []
    for data, source in config.sources.items():
        rates: dict[str, Sequence[float]] = dict.fromkeys(METHODS, source.rates)
        for share in source.shares:
            for seed in source.seeds:
                thinned = thin(data, share, source.clients, source.mirrored, source.moved, seed)
                found = _run_all(run, config, data, share, seed, thinned, rates)
                tried += _as_rows(data, share, seed, found)
                if source.tuned_once:
                    rates = {method: [_best(some).rate] for method, some in found.items()}
                for method, some in found.items():
                    best, about = _best(some), {"data": data, "share": share, "method": method, "seed": seed}
                    outcomes.append(about | _outcome(pose(METHODS[method], thinned), thinned, best))
                    curves += [about | row for row in best.trace.rows]
    folder.write("outcomes.csv", tables.as_csv(outcomes))
    folder.write("curves.csv", tables.as_csv(curves))
    folder.write("trials.csv", tables.as_csv(tried))
    conclude(
        folder,
        rare_report.describe(config),
        rare_report.pictures(outcomes, curves),
        rare_report.table(outcomes),
        rare_report.check(outcomes),
        run.seconds,
    )


def _run_all(
    run: Runner,
    config: RareSettings,
    data: str,
    share: float,
    seed: int,
    thinned: Thinned,
    rates: Mapping[str, Sequence[float]],
) -> dict[str, list[Run]]:
    """Run every method with its learning rates on the split of a seed."""
    source = config.sources[data]
    units = {}
    for name, method in METHODS.items():
        plan = config.plan(method, source.rounds, source.evaluations)
        others = {"momentum": config.momentum, "proximity": config.proximity}
        algorithms = [build(method, others | {"learning_rate": rate}, plan) for rate in rates[name]]
        title = f"{name} on {data} {100 * share:g}% seed {seed}"
        units[name] = Unit(title, for_run(pose(method, thinned), thinned), plan, algorithms, [seed])
    found = run(list(units.values()))
    return {
        name: [
            Run(rate, trace, _validated(unit.task, trace))
            for rate, (trace,) in zip(rates[name], found[unit.name], strict=True)
        ]
        for name, unit in units.items()
    }


def _validated(task: Task, trace: Trace) -> float:
    metric = deciding_metric(task)
    chosen = None if trace.failure else choose(trace.rows, metric)
    return float("-inf") if chosen is None else chosen[metric.name]


def _as_rows(data: str, share: float, seed: int, found: Mapping[str, Sequence[Run]]) -> list[dict[str, Any]]:
    """Return the runs from which a learning rate was chosen as rows of a table."""
    return [
        {"data": data, "share": share, "seed": seed, "method": method, "rate": one.rate, "validation": one.validated}
        for method, runs in found.items()
        if len(runs) > 1
        for one in runs
    ]


def _best(runs: Sequence[Run]) -> Run:
    """Return the run with the best validated iterate, the first of equals."""
    return max(runs, key=lambda one: one.validated)


def _outcome(task: Task, thinned: Thinned, best: Run) -> dict[str, Any]:
    """Look at the test data once, with the chosen iterate of the chosen run."""
    tested = measure_test(task, best.trace.best)
    chosen = choose(best.trace.rows, AT_SHARE.on_validation())
    positives, examples = count_test(task)
    return {
        "validation": best.validated,
        rare_report.AT_TRAINING_SHARE: tested[AT_SHARE.name],
        rare_report.AS_THEY_ARE: tested[AVERAGE_PRECISION.name],
        "training share": thinned.share,
        "training positives": sum(int(part.labels.sum()) for part in thinned.sites.train),
        "test positives": positives,
        "test share": positives / examples,
        "learning rate": best.rate,
        "chosen round": chosen["round"] if chosen else 0,
        **best.trace.costs.as_dict(),
        "seconds": best.trace.rows[-1]["seconds"],
    }


RARE = Experiment("Average precision against the share of positives, on pictures and tables.", settings, execute)
