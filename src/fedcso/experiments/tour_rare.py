"""The second part of the tour: rare positives at several sites, learned in four ways.

All have the same network, as many examples per step, and the same learning rates to choose from on validation data,
which also choose the iterate; the test data are looked at once. A seed decides also the split and who holds what.
"""

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from fedcso.core.intervals import mean_and_interval
from fedcso.core.plan import Plan
from fedcso.core.task import Task
from fedcso.core.trace import Trace
from fedcso.datasets.examples import pool_examples
from fedcso.datasets.tables.sites import load_sites
from fedcso.engines.choice import choose, deciding_metric
from fedcso.experiments.experiment import Runner
from fedcso.experiments.rare_positives import METHODS, Method, build
from fedcso.experiments.rare_tasks import Thinned, count_test, for_run, measure_test, pose
from fedcso.experiments.tour_settings import RareSizes
from fedcso.experiments.tour_words import Verdict, join, judge, percent
from fedcso.problems.at_share import AT_SHARE
from fedcso.problems.site_tasks import share_of_positives
from fedcso.reports import figures, tables
from fedcso.reports.looks import look
from fedcso.reports.story import Section
from fedcso.runs.study import Unit

OURS = "FCSG-M"
FEDERATED = {
    "FedAvg": "cross-entropy",
    "FedAvg, balanced": "cross-entropy, half of each batch positive",
    OURS: "average precision",
}
"""The federated contenders, and what they minimise."""
ALONE = "each site alone"
BEST_ALONE = "the best site alone"

Row = Mapping[str, Any]


def run_rare(run: Runner, sizes: RareSizes, seeds: Sequence[int]) -> list[dict[str, Any]]:
    """Run all contenders on the split of every seed; return a row for each of them and each seed."""
    return [row for seed in seeds for row in _run_split(run, sizes, seed)]


def _run_split(run: Runner, sizes: RareSizes, seed: int) -> list[dict[str, Any]]:
    data = _load(sizes, seed)
    tasks = {name: pose(METHODS[name], data) for name in FEDERATED}
    # A site that has no positives has nothing to learn from.
    able = [n for n, part in zip(data.sites.names, data.sites.train, strict=True) if part.labels.sum() > 0]
    tasks |= {f"site {name} alone": pose(METHODS[OURS], data, train_on=name) for name in able}
    units = {
        name: _unit(sizes, name, METHODS.get(name, METHODS[OURS]), task, data, seed) for name, task in tasks.items()
    }
    found = run(list(units.values()))
    values: dict[str, float] = {}
    rates: dict[str, float] = {}
    validated: dict[str, float] = {}
    for name, unit in units.items():
        traces = [trace for (trace,) in found[unit.name]]
        scores = [_validated(unit.task, trace) for trace in traces]
        best = max(range(len(traces)), key=scores.__getitem__)
        values[name] = measure_test(tasks[name], traces[best].best)[AT_SHARE.name]
        rates[name], validated[name] = sizes.rates[best], scores[best]
    alone = {name: values[name] for name in tasks if name not in FEDERATED}
    positives, rows = count_test(tasks[OURS])
    about = {
        "seed": seed,
        "share": data.share,
        "training positives": sum(int(part.labels.sum()) for part in data.sites.train),
        "training rows": sum(len(part.labels) for part in data.sites.train),
        "test positives": positives,
        "test rows": rows,
    }
    ways = {name: (values[name], f"{rates[name]:g}") for name in FEDERATED}
    used = ", ".join(f"{rate:g}" for rate in sorted({rates[name] for name in alone}))
    # A site without positives can only guess, which gives the share of positives.
    ways[ALONE] = (fmean([*alone.values(), *[data.share] * (len(data.sites.names) - len(alone))]), used)
    ways[BEST_ALONE] = (alone[max(alone, key=validated.__getitem__)], used)
    return [about | {"way": way, "value": value, "rate": rate} for way, (value, rate) in ways.items()]


def _load(sizes: RareSizes, seed: int) -> Thinned:
    sites = load_sites(
        sizes.data, positive=sizes.positive, clients=sizes.clients, removed=sizes.removed, data_seed=seed
    )
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


def tell_rare(rows: Sequence[Row], sizes: RareSizes) -> Section:
    """Return the section: what was measured, in a table, a sentence and a figure."""
    ways = list(dict.fromkeys(row["way"] for row in rows))
    values = {way: [row["value"] for row in rows if row["way"] == way] for way in ways}
    share = fmean(row["share"] for row in rows)
    positives, others = (round(fmean(row[name] for row in rows)) for name in ("training positives", "training rows"))
    table = [
        {
            "way to learn": way,
            "minimises": FEDERATED.get(way, FEDERATED[OURS]),
            "data leave the sites": "no",
            "average precision on test data": tables.Estimate(*mean_and_interval(own)),
            "seed by seed": " ".join(f"{value:.2f}" for value in own),
        }
        for way, own in values.items()
    ]
    return Section(
        title="2. Rare positives at several sites",
        about=f"{sizes.clients} sites look for handwritten {sizes.positive}s: {positives} of {others:,} training images "
        f"are positive ({percent(share)}), about {positives / sizes.clients:.0f} at each site. Average precision is the "
        "share of right alerts, averaged over all positives found; guessing gives "
        f"{share:.3f}. Learning rates and the round to stop are chosen on validation data, and the test images "
        "are looked at once.",
        table=table,
        sentence=_sentence(values, share),
        figure=_draw(values, share),
        caption="Average precision on test images at the training share of positives: one dot for each seed, and the "
        "mean with its 95 % interval; dotted: guessing.",
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
    return f"{first}{join(said)}. {_advice(verdicts)}"


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
        objective = f"{join(better)}, which is ordinary federated learning, is the better choice here"
    elif level:
        objective = f"{join(level)} is simpler and does about as well here"
    else:
        objective = "and so is an objective made for rare positives"
    link = ", " if not better and not level and together is Verdict.AHEAD else "; "
    return f"{joining}{link}{objective}."


def _draw(values: Mapping[str, Sequence[float]], share: float) -> figures.Drawing:
    figure = figures.Drawing(figsize=(6.4, 0.9 + 0.5 * len(values)), layout="constrained")
    axes = figure.subplots()
    for place, (way, own) in enumerate(values.items()):
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
