"""Average precision against the share of positives, on pictures and tables: where does each objective win?

All methods have the same network, the same number of examples per step, and the same learning rates to choose from on
validation data, which also choose the iterate. The test data are looked at once, at the end.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

from fedcso.core.plan import Plan
from fedcso.core.task import Task
from fedcso.core.trace import Trace
from fedcso.engines.choice import choose, deciding_metric
from fedcso.experiments import rare_report
from fedcso.experiments.experiment import Experiment, Runner, Settings
from fedcso.experiments.rare_positives import METHODS, Method, build
from fedcso.experiments.rare_tasks import Thinned, count_test, for_run, measure_test, pose, thin
from fedcso.experiments.reproduction import conclude
from fedcso.problems.at_share import AT_SHARE
from fedcso.problems.scores import AVERAGE_PRECISION
from fedcso.reports import tables
from fedcso.runs.folder import RunFolder
from fedcso.runs.study import Unit


@dataclass(frozen=True, kw_only=True)
class Source:
    """A data set of the experiment: its shares of positives, and the length of its runs."""

    shares: Sequence[float]
    """Shares of positives in the training data; a share above the data's own means all positives."""
    clients: int
    rounds: int
    trial_rounds: int = 0
    """The length of trials, on another split, that choose the learning rate for all seeds. 0 runs every rate in full
    for every seed, and the seed's own validation data choose; data without a published test set need this, because
    another split would show the trials what is tested here."""
    rates: Sequence[float]
    seeds: Sequence[int]
    evaluations: int
    mirrored: bool = False
    moved: int = 0


@dataclass(frozen=True, kw_only=True)
class RareSettings(Settings):
    """The settings of the experiment; those that differ between data sets are given by data set."""

    sources: Mapping[str, Source]
    local_steps: int = 10
    outer_batch: int = 8
    inner_batch: int = 32
    clip: float = 1.0
    momentum: float = 0.5
    proximity: float = 0.01
    trial_seed: int = 1000

    def __post_init__(self) -> None:
        typed = {name: _source(one) for name, one in self.sources.items()}
        object.__setattr__(self, "sources", typed)

    def plan(self, method: Method, rounds: int, evaluations: int) -> Plan:
        """Return a plan in which all methods see as many examples per step: b positives and m others, or b + m."""
        b, m = self.outer_batch, self.inner_batch
        sizes = (b, m) if method.problem == "auprc" else (b + m, m)
        return Plan(rounds, self.local_steps, *sizes, evaluate_every=max(1, rounds // evaluations), clip=self.clip)


def _source(one: Source | dict[str, Any]) -> Source:
    return one if isinstance(one, Source) else Source(**one)


def settings(quick: bool) -> RareSettings:
    """Return the settings of the full experiment; `quick` has two small data sets that come with scikit-learn."""
    if quick:
        small = {"clients": 4, "rounds": 15, "rates": [0.1, 0.3, 1.0], "seeds": [0, 1, 2], "evaluations": 15}
        sources = {
            "digits": Source(shares=[0.02, 0.05, 0.17], **small),  # type: ignore[arg-type]
            "breast_cancer": Source(shares=[0.05, 0.17], **small),  # type: ignore[arg-type]
        }
        return RareSettings(sources=sources)
    shares, rates = [0.005, 0.01, 0.02, 0.05, 0.17], [0.3, 1.0, 3.0]
    table: dict[str, Any] = {"clients": 8, "rounds": 60, "rates": rates, "evaluations": 15}
    pictures: dict[str, Any] = {"clients": 4, "rates": rates, "seeds": [0, 1, 2]}
    return RareSettings(
        sources={
            "flchain": Source(shares=[0.005, 0.01, 0.015], seeds=[0, 1, 2, 3, 4], **table),
            "diamonds": Source(shares=shares, seeds=[0, 1, 2], **table),
            "mnist": Source(shares=shares, rounds=15, trial_rounds=5, evaluations=5, **pictures),
            "cifar10": Source(
                # The order of the runs: the most interesting share first.
                shares=[0.02, 0.01, 0.17],
                rounds=60,
                trial_rounds=15,
                evaluations=6,
                mirrored=True,
                moved=2,
                **pictures,
            ),
        }
    )


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
        for share in source.shares:
            rates: dict[str, Sequence[float]] = dict.fromkeys(METHODS, source.rates)
            if source.trial_rounds:
                found = _run_all(run, config, data, share, config.trial_seed, rates, trial=True)
                tried += _as_rows(data, share, config.trial_seed, found)
                rates = {method: [_best(some).rate] for method, some in found.items()}
            for seed in source.seeds:
                found = _run_all(run, config, data, share, seed, rates)
                if not source.trial_rounds:
                    tried += _as_rows(data, share, seed, found)
                thinned = _thinned(source, data, share, seed)
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
    rates: Mapping[str, Sequence[float]],
    trial: bool = False,
) -> dict[str, list[Run]]:
    """Run every method with its learning rates on the split of a seed."""
    source = config.sources[data]
    rounds, evaluations = (source.trial_rounds, 1) if trial else (source.rounds, source.evaluations)
    thinned = _thinned(source, data, share, seed)
    units = {}
    for name, method in METHODS.items():
        plan = config.plan(method, rounds, evaluations)
        others = {"momentum": config.momentum, "proximity": config.proximity}
        algorithms = [build(method, others | {"learning_rate": rate}, plan) for rate in rates[name]]
        title = f"{'trial ' * trial}{name} on {data} {100 * share:g}% seed {seed}"
        units[name] = Unit(title, for_run(pose(method, thinned), thinned), plan, algorithms, [seed])
    found = run(list(units.values()))
    return {
        name: [
            Run(rate, trace, _validated(unit.task, trace))
            for rate, (trace,) in zip(rates[name], found[unit.name], strict=True)
        ]
        for name, unit in units.items()
    }


def _thinned(source: Source, data: str, share: float, seed: int) -> Thinned:
    return thin(data, share, source.clients, source.mirrored, source.moved, seed)


def _validated(task: Task, trace: Trace) -> float:
    metric = deciding_metric(task)
    chosen = None if trace.failure else choose(trace.rows, metric)
    return float("-inf") if chosen is None else chosen[metric.name]


def _as_rows(data: str, share: float, seed: int, found: Mapping[str, Sequence[Run]]) -> list[dict[str, Any]]:
    """Return all runs from which a learning rate was chosen as rows of a table."""
    return [
        {"data": data, "share": share, "seed": seed, "method": method, "rate": one.rate, "validation": one.validated}
        for method, runs in found.items()
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
