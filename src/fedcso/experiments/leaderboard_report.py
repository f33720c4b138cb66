"""The leaderboard's tables, figure and pages."""

import math
from collections.abc import Sequence
from statistics import median
from typing import Any, NamedTuple, Protocol

import numpy as np
from matplotlib.figure import Figure

from fedcso.experiments.leaderboard_ranks import (
    RESAMPLES,
    SHARE,
    Entry,
    Place,
    Spent,
    places,
    spent_until,
    standing,
    target,
)
from fedcso.experiments.leaderboard_settings import BASELINE, LeaderboardSettings
from fedcso.experiments.reproduction import FixedSections, Picture, Statement, conclude
from fedcso.reports import standings, tables
from fedcso.reports.tables import Estimate
from fedcso.runs.folder import RunFolder

PAGE = "leaderboard.html"


class Refusal(Protocol):
    """A method that does not take part in a contest, and why."""

    @property
    def problem(self) -> str: ...  # noqa: D102 - see the class
    @property
    def method(self) -> str: ...  # noqa: D102
    @property
    def reason(self) -> str: ...  # noqa: D102


class Ranked(NamedTuple):
    """A method on a problem, with its places and its costs to the stated accuracy."""

    entry: Entry
    place: Place
    wanted: float
    """The stated accuracy; nan without the baseline."""
    spent: Spent | None
    baseline: Spent | None
    """What the baseline has spent."""


def rank_all(entries: Sequence[Entry]) -> list[Ranked]:
    """Rank the methods of every problem, the best first."""
    ranked = []
    for problem in dict.fromkeys(entry.problem for entry in entries):
        own = [entry for entry in entries if entry.problem == problem]
        base = next((entry for entry in own if entry.method == BASELINE and not entry.failed), None)
        wanted = target(base) if base else math.nan
        reached = spent_until(base, wanted) if base else None
        found = [
            Ranked(entry, place, wanted, spent_until(entry, wanted) if base else None, reached)
            for entry, place in zip(own, places(own), strict=True)
        ]
        ranked += sorted(found, key=_best_first)
    return ranked


def _best_first(one: Ranked) -> tuple[bool, float]:
    mean, _ = one.entry.interval()
    return one.entry.failed, -mean if one.entry.metric.higher_is_better else mean


def write(
    folder: RunFolder,
    config: LeaderboardSettings,
    entries: Sequence[Entry],
    left_out: Sequence[Refusal],
    seconds: float,
) -> None:
    """Write all files, and print the table of methods."""
    ranked = rank_all(entries)
    whole, single = overall(ranked), results(ranked)
    notes = [{"problem": one.problem, "method": one.method, "reason": one.reason} for one in left_out]
    fixed = describe(config)
    folder.write("results.csv", tables.as_csv(tables.flat(single)))
    folder.write("left-out.csv", tables.as_csv(notes))
    folder.write(
        PAGE,
        standings.page(
            fixed.title,
            [fixed.implemented, fixed.hyper_parameters],
            {"Methods": whole, "Methods by problem": single, "Left out": notes},
            filters={"problem": list(config.contests), "group": list(dict.fromkeys(one.group for one in entries))},
        ),
    )
    caption = (
        "Relative ranks: 0 is ahead of all other methods of the problem, 1 behind all; empty where one is left out."
    )
    conclude(folder, fixed, [Picture("leaderboard", draw(ranked), caption)], whole, check(ranked), seconds)
    print(f"tables   {folder.path / PAGE}")


def overall(ranked: Sequence[Ranked]) -> list[dict[str, Any]]:
    """Return a row for each method, over all problems, the lowest mean relative rank first.

    Methods with too few problems for an interval come last.
    """
    rows = []
    for method in dict.fromkeys(one.entry.method for one in ranked):
        own = [one for one in ranked if one.entry.method == method]
        mean, low, high, count = standing([one.place.relative for one in own])
        ratios = [
            (one.spent.samples / one.baseline.samples, one.spent.bytes / max(1.0, one.baseline.bytes))
            for one in own
            if one.spent and one.baseline and one.baseline.samples
        ]
        rows.append(
            {
                "method": method,
                "group": own[0].entry.group,
                "problems": count,
                "mean relative rank": mean,
                "95 % interval": "–" if math.isnan(low) else f"{low:.2f} to {high:.2f}",
                "among the first": sum(one.place.first == 1 for one in own),
                "reached": sum(one.spent is not None for one in own),
                f"samples vs. {BASELINE}": median(part for part, _ in ratios) if ratios else "–",
                f"bytes vs. {BASELINE}": median(part for _, part in ratios) if ratios else "–",
                "at the edge": sum(one.entry.at_edge for one in own),
            }
        )
    return sorted(rows, key=lambda row: (row["95 % interval"] == "–", row["mean relative rank"]))


def results(ranked: Sequence[Ranked]) -> list[dict[str, Any]]:
    """Return a row for each method and problem."""
    return [
        {
            "method": one.entry.method,
            "group": one.entry.group,
            "problem": one.entry.problem,
            "rank": f"{one.place.rank:g}",
            "places": f"{one.place.first} to {one.place.last} of {one.place.among}",
            "metric": one.entry.metric.title,
            "score": "failed" if one.entry.failed else Estimate(*one.entry.interval()),
            "stated accuracy": f"{one.wanted:.4g}",
            "samples to it": round(one.spent.samples) if one.spent else "never",
            "bytes to it": round(one.spent.bytes) if one.spent else "never",
            "samples ξ": one.entry.costs.outer_samples,
            "samples η": one.entry.costs.inner_samples,
            "gradients": one.entry.costs.gradients,
            "rounds": one.entry.costs.rounds,
            "settings": ", ".join(f"{name} {value:.3g}" for name, value in one.entry.settings.items())
            + (" (edge)" if one.entry.at_edge else ""),
        }
        for one in ranked
    ]


def check(ranked: Sequence[Ranked]) -> list[Statement]:
    """Check that the paper's momentum methods are ahead of FCSG, in ranks over problems."""
    by_method = {method: _relative(ranked, method) for method in (BASELINE, "FCSG-M", "Acc-FCSG-M")}
    statements = []
    for method, own in by_method.items():
        common = [problem for problem in own if problem in by_method[BASELINE]]
        if method == BASELINE or not common:
            continue
        behind = standing([own[problem] - by_method[BASELINE][problem] for problem in common])
        interval = "" if math.isnan(behind.low) else f" (95 % interval {behind.low:+.3f} to {behind.high:+.3f})"
        statements.append(
            Statement(
                f"{method} is ahead of {BASELINE} with the same number of samples.",
                behind.high < 0,
                f"its relative rank minus that of {BASELINE} is {behind.mean:+.3f} on average over {behind.problems} "
                f"problems{interval}; the whole interval must be below 0.",
            )
        )
    return statements


def _relative(ranked: Sequence[Ranked], method: str) -> dict[str, float]:
    return {one.entry.problem: one.place.relative for one in ranked if one.entry.method == method}


def draw(ranked: Sequence[Ranked]) -> Figure:
    """Draw relative ranks: a row for each method, a column for each problem."""
    problems = list(dict.fromkeys(one.entry.problem for one in ranked))
    methods = {row["method"]: _relative(ranked, row["method"]) for row in overall(ranked)}
    cells = np.array([[own.get(problem, math.nan) for problem in problems] for own in methods.values()])
    figure = Figure(figsize=(2.6 + 0.45 * len(problems), 1.8 + 0.24 * len(methods)), layout="constrained")
    axes = figure.subplots()
    shown = axes.imshow(np.ma.masked_invalid(cells), cmap="viridis_r", vmin=0, vmax=1, aspect="auto")
    axes.set_xticks(range(len(problems)), [name.replace("_", " ") for name in problems], rotation=60, ha="right")
    axes.set_yticks(range(len(methods)), list(methods))
    axes.tick_params(labelsize=8)
    figure.colorbar(shown, label="relative rank")
    return figure


def describe(config: LeaderboardSettings) -> FixedSections:
    """Return the fixed sections of the page."""
    trials = len(config.factors) + 2 * config.turns
    factors = ", ".join(f"{factor:g}" for factor in config.factors)
    further = (
        ", then other values of its further hyper-parameters (a third of the default, and three times as much), or "
        "for a method without them learning rates in between"
    )
    return FixedSections(
        title="Leaderboard: every method on every problem that it fits",
        paper="The paper compares a few methods on each of its problems. It has no comparison of all methods on one "
        "set of problems.",
        implemented=f"{len(config.contests)} problems in small sizes. On each problem all methods draw the same number "
        "of outer samples ξ, and m inner samples η for each of them (for all of a step together, where the problem "
        "shares them); gradients, rounds and bytes differ and are reported. Methods with larger batches now and then "
        "(PAGE, BSpiderBoost) have fewer rounds; those without local steps communicate after every step; those of one "
        "machine have all data in one place, where the problem "
        "can be posed so. A method that refuses a problem is left out with a note. The score is that of the last "
        "iterate: the deciding metric on test data, or, without validation data, F (for invariant_logistic ‖∇F‖), "
        "which is known exactly. Two methods are tied unless the 95 % interval of their differences, seed by seed, is "
        "on one side of 0. A method's rank is the middle of the places that ties leave open; the relative rank is 0 "
        "ahead of all others and 1 behind all. Means of relative ranks have 95 % bootstrap intervals over problems "
        f"({RESAMPLES:,} resamples). The stated accuracy is {SHARE:.0%} of the improvement of {BASELINE} over its run; "
        "samples (ξ and η) and bytes (up and down) are counted until the mean over seeds reaches it, and compared "
        f"with those of {BASELINE} by the median over problems where a method reaches it.",
        data="Simulated where the problem is; digits, diabetes (scikit-learn) and glyphs for the others: "
        f"{', '.join(config.contests)}.",
        hyper_parameters=f"Every method has {trials} trials at full length with seed {config.trial_seed}: learning "
        f"rates of {factors} times that of the problem{further if config.turns else ''}. Validation data choose, or "
        "without them the exactly known score. The table says how often the chosen learning rate is the smallest or "
        f"the largest (“at the edge”). Final runs have the seeds {list(config.seeds)}.",
        expected="The momentum methods are ahead of FCSG; methods made for a problem are ahead on it.",
    )
