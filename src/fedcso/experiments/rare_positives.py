"""The methods that Table 2 compares, its settings, its figures and the statements about it.

The methods minimise different objectives: FedAvg the cross-entropy, CODA+ a surrogate of AUROC, the FCSG methods a
surrogate of AUPRC.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any, NamedTuple, cast

from matplotlib.figure import Figure

from fedcso.algorithms import ALGORITHMS
from fedcso.core.algorithm import Algorithm
from fedcso.core.intervals import mean_and_interval
from fedcso.core.plan import Plan
from fedcso.core.schedules import Cosine
from fedcso.experiments import trials
from fedcso.experiments.experiment import Settings, require_known
from fedcso.experiments.reproduction import FixedSections, Statement
from fedcso.problems.scores import AUROC, AVERAGE_PRECISION, PREVALENCE
from fedcso.reports import figures, tables
from fedcso.reports.recorded import Record
from fedcso.reports.tables import Estimate
from fedcso.runs.methods import hyper_parameters
from fedcso.runs.study import Results, Unit


class Method(NamedTuple):
    """A method, the problem it minimises, its settings besides rate and clipping, and the problem's options."""

    algorithm: str
    problem: str
    others: tuple[str, ...] = ()
    options: tuple[tuple[str, Any], ...] = ()


FEDAVG = {
    "FedAvg": Method("FedAvg", "cross_entropy"),
    "FedAvg, weighted": Method("FedAvg", "cross_entropy", options=(("weighted", True),)),
    "FedAvg, balanced": Method("FedAvg", "cross_entropy", options=(("balanced", True),)),
}
CODA = {"CODA+": Method("CODA+", "auroc", ("proximity",))}
OTHERS = (*FEDAVG, *CODA)
OURS = ("FCSG", "FCSG-M", "Acc-FCSG-M")

PAPERS_SURROGATE = (("bounded", False), ("logarithm", False))
OF_PAPER = "FCSG-M, paper's surrogate"
METHODS = (
    FEDAVG
    | CODA
    | {
        "FCSG": Method("FCSG", "auprc"),
        "FCSG-M": Method("FCSG-M", "auprc", ("momentum",)),
        "Acc-FCSG-M": Method("Acc-FCSG-M", "auprc", ("momentum",)),
        OF_PAPER: Method("FCSG-M", "auprc", ("momentum",), PAPERS_SURROGATE),
    }
)
"""The methods that are compared where positives are rare. The FCSG methods minimise the default surrogate."""

RAW = (("sigmoid", False), ("margin", 1.0))
LOG, JOINT = "FCSG-M, log precision", "FCSG-M, with cross-entropy"
BEYOND = (LOG, JOINT)
"""Methods of Table 2 whose objective is not the paper's."""
TABLE2_METHODS = (
    FEDAVG
    | CODA
    | {
        "FCSG": Method("FCSG", "auprc", options=PAPERS_SURROGATE),
        "FCSG-M": Method("FCSG-M", "auprc", ("momentum",), PAPERS_SURROGATE),
        "Acc-FCSG-M": Method("Acc-FCSG-M", "auprc", ("momentum",), PAPERS_SURROGATE),
        LOG: Method("FCSG-M", "auprc", ("momentum",), (("bounded", True), ("logarithm", True), *RAW)),
        JOINT: Method("FCSG-M", "auprc", ("momentum",), (*PAPERS_SURROGATE, ("cross_entropy", 1.0), *RAW)),
    }
)
"""The methods of Table 2: the FCSG methods on the paper's surrogate, and FCSG-M on two others."""
PAPER = {
    "mnist": {"FedAvg": 0.9357, "CODA+": 0.9733, "FCSG": 0.9868, "FCSG-M": 0.9878, "Acc-FCSG-M": 0.9879},
    "cifar10": {"FedAvg": 0.5059, "CODA+": 0.6039, "FCSG": 0.7130, "FCSG-M": 0.7157, "Acc-FCSG-M": 0.7184},
}
"""The values in Table 2 of the paper."""


@dataclass(frozen=True, kw_only=True)
class Table2Settings(Settings):
    """The settings of Table 2; those that differ between data sets are given by data set."""

    data: Sequence[str]
    clients: int = 16
    removed: float = 0.8
    local_steps: int = 10
    outer_batch: int = 10
    inner_batch: int = 40
    sigmoid: Mapping[str, bool]
    margin: Mapping[str, float]
    mirrored: Mapping[str, bool]
    moved: Mapping[str, int]
    rounds: Mapping[str, int]
    trial_rounds: Mapping[str, int]
    seeds: Sequence[int] = (0, 1, 2)
    trial_seeds: Mapping[str, Sequence[int]]
    trial_turns: int
    rates: Sequence[float]
    clip: Sequence[float]
    momentum: Sequence[float]
    proximity: Sequence[float]
    evaluations: int = 10

    def limited_to(self, data: Sequence[str]) -> "Table2Settings":
        """Return these settings for some of the data sets only."""
        require_known(data, self.data)
        return replace(self, data=[name for name in self.data if name in data])


def build(method: Method, settings: Mapping[str, float], plan: Plan) -> Algorithm:
    """Return a method with its settings; all learning rates but that of CODA+ decay along half a cosine."""
    kind = ALGORITHMS[method.algorithm]
    algorithm: Any = kind(**{k: v for k, v in settings.items() if k in hyper_parameters(kind)})
    if method.algorithm == "CODA+":  # has its own schedule: stages
        return cast(Algorithm, replace(algorithm, stage_steps=max(1, plan.total_steps // 3)))
    rate = Cosine(settings["learning_rate"], plan.total_steps, floor=0.05)
    return cast(Algorithm, replace(algorithm, learning_rate=rate))


class Curve(NamedTuple):
    """The evaluations of a method on a data set, for all seeds."""

    data: str
    method: str
    rows: list[dict[str, Any]]

    @classmethod
    def of(cls, unit: Unit, found: Results) -> "Curve":
        """Return the evaluations of a unit."""
        data, method = (str(unit.labels[name]) for name in ("data", "method"))
        return cls(data, method, tables.metric_rows({unit.name: found[unit.name]}, unit.seeds))


def line(curve: Curve, chosen: trials.Settings) -> dict[str, Any]:
    """Return the row of the table for a method on a data set."""
    (last,) = tables.summary(Record(curve.rows))
    paper = PAPER.get(curve.data, {}).get(curve.method)
    return (
        {"method": curve.method, "data": curve.data, "seeds": last["seeds"]}
        | {"average precision": last[AVERAGE_PRECISION.name]}
        | {"paper": f"{paper:.4f}" if paper else "–", "chance": f"{last[PREVALENCE.name].mean:.3f}"}
        | {"mean over clients": last[AVERAGE_PRECISION.over_clients().name], "AUROC": last[AUROC.name]}
        | {"settings": ", ".join(f"{name.replace('_', ' ')} {v:.3g}" for name, v in chosen.items())}
        | {name: last[name] for name in ("rounds", "samples ξ", "samples η", "gradients", "bytes sent", "seconds")}
    )


def panels(curves: Sequence[Curve]) -> Figure:
    """Draw a panel for each data set, with a curve for each method."""
    names = list(dict.fromkeys(curve.data for curve in curves))
    figure = Figure(figsize=(5.6 * len(names), 4.2), layout="constrained")
    for axes, data in zip(figure.subplots(1, len(names), squeeze=False)[0], names, strict=True):
        here = [curve for curve in curves if curve.data == data]
        for curve in here:
            place = list(TABLE2_METHODS).index(curve.method)
            figures.curve(axes, curve.rows, AVERAGE_PRECISION.on_test(), curve.method, place)
        chance = here[0].rows[0][PREVALENCE.name]
        axes.axhline(chance, color="#8A8A8A", linewidth=1, linestyle=":", label="chance")
        figures.finish(axes, AVERAGE_PRECISION.on_test())
        figures.stretch_towards_one(axes, 0.9 * chance)
        axes.set_title(data)
    figures.add_legend(figure)
    return figure


def check(precision: dict[str, dict[str, list[float]]]) -> list[Statement]:
    """Check for each data set the paper's statement, that the FCSG methods are ahead, and the same of `BEYOND`."""
    statements = []
    for data, by_method in precision.items():
        level = {method: fmean(values) for method, values in by_method.items()}
        ours, theirs = max(OURS, key=level.__getitem__), max(OTHERS, key=level.__getitem__)
        ahead = _difference(by_method, ours, theirs)
        statements.append(
            Statement(
                f"on {data} the FCSG methods have a higher average precision than FedAvg and CODA+",
                min(level[m] for m in OURS) > max(level[m] for m in OTHERS) and ahead.mean - ahead.half_width > 0,
                "; ".join(f"{method} {level[method]:.4f}" for method in sorted(level, key=lambda m: -level[m]))
                + f"; {ours} minus {theirs}, seed by seed: {ahead} (every FCSG method must be above all others, and "
                "this interval above 0).",
            )
        )
        for method in BEYOND:
            lead = _difference(by_method, method, theirs)
            statements.append(
                Statement(
                    f"on {data} {method} has a higher average precision than FedAvg and CODA+",
                    lead.mean - lead.half_width > 0,
                    f"{level[method]:.4f}; minus {theirs}, seed by seed: {lead} (this interval must be above 0; not "
                    "in the paper).",
                )
            )
    return statements


def _difference(by_method: dict[str, list[float]], one: str, other: str) -> Estimate:
    return Estimate(*mean_and_interval([a - b for a, b in zip(by_method[one], by_method[other], strict=True)]))


def _surrogates(config: Table2Settings) -> str:
    kinds = {data: "sigmoid" if config.sigmoid[data] else "raw" for data in config.data}
    return "; ".join(f"{data}: {kind} scores, margin {config.margin[data]}" for data, kind in kinds.items())


def _steps(config: Table2Settings, rounds: Mapping[str, int]) -> str:
    return " and ".join(f"{rounds[data] * config.local_steps} steps on {data}" for data in config.data)


def _versions(config: Table2Settings) -> str:
    varied = [data for data in config.data if config.mirrored[data] or config.moved[data]]
    return "".join(
        f" Training images of {data} are randomly {'mirrored and ' * config.mirrored[data]}moved by up to "
        f"{config.moved[data]} pixels, for all methods."
        for data in varied
    )


def describe(config: Table2Settings, trials_each: int) -> FixedSections:
    """Return the fixed sections of the page; every method had `trials_each` trials."""
    seeds = "; ".join(f"{data}: {list(config.trial_seeds[data])}" for data in config.data)
    return FixedSections(
        title="Table 2: average precision with rare positives",
        paper="Final test average precision on MNIST and CIFAR-10: classes 5–9 positive, 80 % of the training "
        "positives removed, test data untouched; FedAvg (cross-entropy), CODA+, FCSG, FCSG-M, Acc-FCSG-M. Network, "
        "batch sizes, steps and settings are not stated.",
        implemented=f"The same split over {config.clients} clients with equal distributions; the networks of the "
        f"authors' related work; {config.outer_batch} positives and {config.inner_batch} other examples per client and "
        f"step (as many examples for the other methods), q = {config.local_steps}; {_surrogates(config)}; each "
        "positive counts among its own inner samples; learning rates decay along half a cosine (CODA+: in stages). "
        "FedAvg is also run with both classes weighted equally, and with batches of which half are positive. "
        "The FCSG methods minimise the paper's surrogate. "
        f"{LOG}: the default surrogate of `fedcso run auprc`, −log(g₁/g₂) on raw scores, where a positive above "
        f"another counts at most s². {JOINT}: the paper's surrogate on raw scores plus the cross-entropy of the "
        f"same examples. Every run has {_steps(config, config.rounds)}.",
        data=f"{', '.join(config.data)}; a tenth of the training data, with all its positives, is for validation."
        + _versions(config),
        hyper_parameters=f"Learning rates {config.rates}; clipping {config.clip}, momentum {config.momentum}, "
        f"proximity {config.proximity}; {trials_each} trials of {_steps(config, config.trial_rounds)} for each method, "
        f"chosen by validation average precision with the seeds {seeds}; reported with the seeds {list(config.seeds)}. "
        "The surrogate of each data set was chosen on validation data too. All trials are in `trials.csv` of the "
        "run folder."
        if trials_each > 1
        else f"Not tuned: learning rate {config.rates[0]}, clipping {config.clip[0]}, momentum {config.momentum[0]}; "
        f"seeds {config.seeds}.",
        expected="MNIST: FedAvg 0.9357, CODA+ 0.9733, FCSG 0.9868, FCSG-M 0.9878, Acc-FCSG-M 0.9879. CIFAR-10: 0.5059, "
        "0.6039, 0.7130, 0.7157, 0.7184. Random scores give 0.486 and 0.500.",
    )
