"""The second part of the tour: rare positives at several sites, learned in four ways.

All have the same network, as many examples per step, and the same learning rates to choose from on validation data,
which also choose the iterate; the test data are looked at once. A seed decides also the split and who holds what.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from statistics import fmean
from typing import Any, NamedTuple

from fedcso.core.intervals import mean_and_interval
from fedcso.core.plan import Plan
from fedcso.core.task import Task
from fedcso.core.trace import Trace
from fedcso.datasets.examples import pool_examples
from fedcso.engines.choice import choose, deciding_metric
from fedcso.experiments.experiment import Runner
from fedcso.experiments.rare_positives import METHODS, Method, build
from fedcso.experiments.rare_tasks import Thinned, for_run, measure_test, pose
from fedcso.experiments.tour_patients import draw_patients
from fedcso.experiments.tour_settings import RareSizes
from fedcso.experiments.tour_words import Verdict, join, judge, percent
from fedcso.problems.at_share import AT_SHARE
from fedcso.problems.site_tasks import share_of_positives
from fedcso.reports import figures, tables
from fedcso.reports.looks import look
from fedcso.reports.story import Section
from fedcso.runs.study import Unit

OURS = "FCSG-M"


class Way(NamedTuple):
    """A way to learn: its method in `METHODS`, and what that minimises."""

    method: str
    minimises: str


FEDERATED = {
    "FedAvg": Way("FedAvg", "cross-entropy"),
    "FedAvg with balanced batches": Way("FedAvg, balanced", "cross-entropy, half of each batch positive"),
    OURS: Way("FCSG-M", "average precision"),
}
"""The federated contenders."""
ALONE = "each site alone"
BEST_ALONE = "the best site alone"

Row = Mapping[str, Any]


def run_rare(run: Runner, sizes: RareSizes, seeds: Sequence[int]) -> list[dict[str, Any]]:
    """Run all contenders on the split of every seed; return a row for each of them and each seed."""
    return [row for seed in seeds for row in _run_split(run, sizes, seed)]


def _run_split(run: Runner, sizes: RareSizes, seed: int) -> list[dict[str, Any]]:
    data = _draw_data(seed)
    methods = {name: METHODS[way.method] for name, way in FEDERATED.items()}
    tasks = {name: pose(method, data) for name, method in methods.items()}
    tasks |= {f"{name} alone": pose(methods[OURS], data, train_on=name) for name in data.sites.names}
    units = {
        name: _unit(sizes, name, methods.get(name, methods[OURS]), task, data, seed) for name, task in tasks.items()
    }
    found = run(list(units.values()))
    tested: dict[str, float] = {}
    validated: dict[str, float] = {}
    for name, unit in units.items():
        traces = [trace for (trace,) in found[unit.name]]
        best = max(traces, key=partial(_validated, unit.task))
        validated[name] = _validated(unit.task, best)
        tested[name] = measure_test(tasks[name], best.best)[AT_SHARE.name]
    alone = [name for name in tasks if name not in FEDERATED]
    ways = {name: tested[name] for name in FEDERATED}
    ways[ALONE] = fmean(tested[name] for name in alone)
    ways[BEST_ALONE] = tested[max(alone, key=validated.__getitem__)]
    train = pool_examples(data.sites.train).labels
    about = {"seed": seed, "sites": len(data.sites.names), "positives": int(train.sum()), "rows": len(train)}
    return [about | {"way": way, "value": value} for way, value in ways.items()]


def _draw_data(seed: int) -> Thinned:
    sites = draw_patients(seed)
    return Thinned(sites, share_of_positives(sites), pool_examples(sites.train), pool_examples(sites.validation))


def _unit(sizes: RareSizes, name: str, method: Method, task: Task, data: Thinned, seed: int) -> Unit:
    """Return the runs of a contender with all learning rates; in each step it sees b + m examples."""
    b, m = sizes.outer_batch, sizes.inner_batch
    batches = (b, m) if method.problem == "auprc" else (b + m, m)
    every = max(1, sizes.rounds // sizes.evaluations)
    plan = Plan(sizes.rounds, sizes.local_steps, *batches, evaluate_every=every, clip=sizes.clip)
    settings = [{"momentum": sizes.momentum, "learning_rate": rate} for rate in sizes.rates]
    algorithms = [build(method, one, plan) for one in settings]
    return Unit(f"{name}, seed {seed}", for_run(task, data), plan, algorithms, [seed])


def _validated(task: Task, trace: Trace) -> float:
    metric = deciding_metric(task)
    chosen = None if trace.failure else choose(trace.rows, metric)
    return float("-inf") if chosen is None else float(chosen[metric.name])


def tell_rare(rows: Sequence[Row]) -> Section:
    """Return the section: what was measured, in a table, a sentence and a figure."""
    ways = list(dict.fromkeys(row["way"] for row in rows))
    values = {way: [float(row["value"]) for row in rows if row["way"] == way] for way in ways}
    sites, positives, all_rows = (round(fmean(row[name] for row in rows)) for name in ("sites", "positives", "rows"))
    share = positives / all_rows
    table = [
        {
            "way to learn": way,
            "minimises": FEDERATED.get(way, FEDERATED[OURS]).minimises,
            "average precision on test data": tables.Estimate(*mean_and_interval(own)),
        }
        for way, own in values.items()
    ]
    return Section(
        title="2. Rare positives at several sites",
        about=f"Simulated patients at {sites} hospitals, whose rows stay where they are: {positives} of {all_rows:,} "
        f"training rows are positive ({percent(share)}), and no single blood value shows it. Average precision is the "
        f"share of alerts that are right, averaged over the positives; guessing gives {share:.3f}. Validation rows "
        "choose learning rates and the round to stop at; test rows are looked at once. On real tables: "
        "docs/reproduction/rare.md.",
        table=table,
        sentence=_sentence(values, share),
        figure=_draw(values, share),
        caption="Average precision on test rows: a dot for each seed, and the mean with its 95 % interval; dotted: "
        "guessing.",
    )


def _sentence(values: Mapping[str, Sequence[float]], share: float) -> str:
    """Say in plain words what the numbers say, whatever they are."""
    others = [way for way in values if way not in (OURS, BEST_ALONE)]
    verdicts = {way: judge(values[OURS], values[way]) for way in others}
    said = []
    for verdict in Verdict:
        named = [f"{way} ({fmean(values[way]):.2f})" for way in others if verdicts[way] is verdict]
        if named:
            said.append(f"{verdict.value} {join(named)}")
    first = f"With {percent(share)} positives, FCSG-M reaches an average precision of {fmean(values[OURS]):.2f}: "
    return f"{first}{', and '.join(said)}. {_advice(verdicts)}"


def _advice(verdicts: Mapping[str, Verdict]) -> str:
    """Say what follows for somebody who has to choose."""
    together = verdicts[ALONE]
    joining = {
        Verdict.AHEAD: "Learning together is worth it for the sites",
        Verdict.BEHIND: "The sites would do better alone",
        Verdict.LEVEL: "These seeds don't show that learning together helps the sites",
    }[together]
    ordinary = {way: verdict for way, verdict in verdicts.items() if way != ALONE}
    better = [way for way, verdict in ordinary.items() if verdict is Verdict.BEHIND]
    level = [way for way, verdict in ordinary.items() if verdict is Verdict.LEVEL]
    if better:
        objective = f"{join(better)}, ordinary federated learning, is the better choice here"
    elif level:
        objective = f"{join(level)} {'is' if len(level) == 1 else 'are'} simpler, and not clearly different here"
    else:
        objective = "and so is an objective made for rare positives"
    link = ", " if not better and not level and together is Verdict.AHEAD else "; "
    return f"{joining}{link}{objective}."


def _draw(values: Mapping[str, Sequence[float]], share: float) -> figures.Drawing:
    figure = figures.Drawing(figsize=(6.4, 0.9 + 0.5 * len(values)), layout="constrained")
    axes = figure.subplots()
    for place, own in enumerate(values.values()):
        colour = look(place).colour
        mean, half = mean_and_interval(own)
        axes.plot(own, [place + 0.18] * len(own), "o", color=colour, alpha=0.45, markersize=4, markeredgewidth=0)
        axes.errorbar([mean], [place], xerr=None if half != half else [half], fmt="D", color=colour, capsize=3)
    axes.axvline(share, color="#8A8A8A", linewidth=1, linestyle=":")
    axes.set(xlim=(0, 1), ylim=(len(values) - 0.5, -0.5), xlabel="average precision on test data")
    axes.set_yticks(range(len(values)), list(values))
    axes.grid(True, axis="x", alpha=0.25, linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    return figure
