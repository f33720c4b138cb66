"""The first part of the tour: the bias of a small inner batch, the mean-outside mistake, and extrapolation.

The nested quadratic has a known answer x*, and the point at which each estimator settles is known too:

    x_m = E[μξ] / ( E[μ²] + τ²/m )        plain with m samples;  m = 1 with the mean outside f;  m = ∞ extrapolated
"""

import math
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any, NamedTuple

import torch

from fedcso.algorithms import FCSG
from fedcso.core.intervals import mean_and_interval
from fedcso.core.judge import Judge
from fedcso.core.metric import Metric
from fedcso.core.plan import Plan
from fedcso.core.schedules import Cosine
from fedcso.core.task import Task
from fedcso.estimators import ESTIMATORS
from fedcso.experiments.experiment import Runner
from fedcso.experiments.tour_settings import BiasSizes
from fedcso.experiments.tour_words import Verdict, judge, percent
from fedcso.problems.nested_quadratic import NestedQuadratic
from fedcso.reports import figures, tables
from fedcso.reports.looks import look
from fedcso.reports.story import Section
from fedcso.runs.study import Unit

OFF = Metric("off", "distance from the right answer, in % of it", higher_is_better=False, log=True)

Row = Mapping[str, Any]


class Contender(NamedTuple):
    """A way to estimate the gradient."""

    estimator: str
    m: int

    @property
    def title(self) -> str:
        """The name in tables and figures."""
        return {"plain": "plain", "mean_outside": "mean outside f", "extrapolated": "extrapolated"}[
            self.estimator
        ] + f", m = {self.m}"

    @property
    def counts_as(self) -> float:
        """The m of the plain estimator that has the same bias on this problem."""
        return {"plain": float(self.m), "mean_outside": 1.0, "extrapolated": math.inf}[self.estimator]


def contenders(sizes: BiasSizes) -> list[Contender]:
    """Return what is compared."""
    m = sizes.inner_batch
    plain = [Contender("plain", size) for size in (sizes.fewer, m, sizes.more)]
    return [Contender("mean_outside", m), *plain, Contender("extrapolated", m)]


def run_bias(run: Runner, sizes: BiasSizes, seeds: Sequence[int]) -> list[dict[str, Any]]:
    """Run all contenders with the same settings; return a row for each evaluation."""
    problem = NestedQuadratic()
    clients = problem.centres(sizes.clients)
    task = Task(problem, clients, test=problem.optimum(clients), judge=Judge(_evaluate, [OFF], broadcasts=True))
    every = max(1, sizes.rounds // sizes.evaluations)
    units = {
        one: Unit(
            one.title,
            task,
            Plan(sizes.rounds, sizes.local_steps, sizes.outer_batch, one.m, evaluate_every=every),
            [FCSG(Cosine(sizes.learning_rate))],
            seeds,
            ESTIMATORS[one.estimator],
        )
        for one in contenders(sizes)
    }
    found = run(list(units.values()))
    return [
        {"estimator": one.title, "seed": seed, "predicted": _predict(task, one), **row}
        for one, unit in units.items()
        for seed, trace in zip(seeds, found[unit.name][0], strict=True)
        for row in trace.rows
    ]


def _evaluate(x: torch.Tensor, best: torch.Tensor) -> dict[str, torch.Tensor]:
    return {OFF.name: 100 * (x - best).norm(dim=-1) / best.norm()}


def _predict(task: Task, contender: Contender) -> float:
    """Return how far from x* the contender settles, from the exact gradient, which is linear in x."""
    assert isinstance(task.problem, NestedQuadratic)
    weights = [1.0] * len(task.clients)
    (at_zero, at_one) = (
        task.problem.exact(torch.full_like(task.test, value), task.clients, weights)[1] for value in (0.0, 1.0)
    )
    slope = at_one - at_zero
    settled = -at_zero / (slope + task.problem.noise**2 / contender.counts_as)
    return float(_evaluate(settled, task.test)[OFF.name])


def tell_bias(rows: Sequence[Row], sizes: BiasSizes) -> Section:
    """Return the section: what was measured, in a table, a sentence and a figure."""
    names = [one.title for one in contenders(sizes)]
    last = {name: _last(rows, name) for name in names}
    table = [
        {
            "estimate of the gradient": name,
            "distance from the right answer, %": tables.Estimate(*mean_and_interval([row[OFF.name] for row in own])),
            "predicted, %": f"{own[0]['predicted']:.3g}",
            "samples η": round(fmean(row["inner_samples"] for row in own)),
        }
        for name, own in last.items()
    ]
    return Section(
        title="1. Noisy measurements: a bias that more training does not remove",
        about=f"A small problem whose right answer is known: {sizes.clients} clients, each example seen only through m "
        "noisy measurements, and the loss is not linear in their mean. All run FCSG with the same settings; only the "
        "estimate of the gradient differs.",
        table=table,
        sentence=_sentence({name: [row[OFF.name] / 100 for row in own] for name, own in last.items()}, sizes),
        figure=_draw(rows, names),
        caption="Distance from the right answer, mean over seeds with 95 % bands; dotted: where theory says that the "
        "estimate settles. A curve that has become flat gains nothing from more rounds.",
    )


def _last(rows: Sequence[Row], name: str) -> list[Row]:
    """Return the last evaluation of each seed."""
    return list({row["seed"]: row for row in rows if row["estimator"] == name}.values())


def _sentence(off: Mapping[str, Sequence[float]], sizes: BiasSizes) -> str:
    """Say in plain words what the numbers say, whatever they are."""
    outside, _, plain, more, extrapolated = (off[one.title] for one in contenders(sizes))
    m, many = sizes.inner_batch, sizes.more

    def shown(values: Sequence[float]) -> str:
        return percent(fmean(values))

    bias = {
        Verdict.BEHIND: f"With {m} noisy measurements of each example, the usual estimate ends {shown(plain)} from the "
        f"right answer; with {many} measurements it would end at {shown(more)}.",
        Verdict.LEVEL: f"With {m} measurements of each example the usual estimate ends {shown(plain)} from the right "
        f"answer, not clearly farther than with {many} ({shown(more)}).",
        Verdict.AHEAD: f"With {m} measurements of each example the usual estimate ends {shown(plain)} from the right "
        f"answer, nearer than with {many} ({shown(more)}): these runs are too short to show the bias.",
    }[judge(plain, more, higher_is_better=False)]
    remedy = {
        Verdict.AHEAD: f"Extrapolation brings it down to {shown(extrapolated)} with the same {m} measurements"
        + (
            "."
            if judge(extrapolated, more, higher_is_better=False) is not Verdict.BEHIND
            else f", though not the {shown(more)} of {many}."
        ),
        Verdict.LEVEL: f"Extrapolation from the same {m} makes no clear difference ({shown(extrapolated)}).",
        Verdict.BEHIND: f"Extrapolation from the same {m} is worse here ({shown(extrapolated)}): its noise is larger.",
    }[judge(extrapolated, plain, higher_is_better=False)]
    mistake = {
        Verdict.BEHIND: f"Averaging the losses of the measurements instead of the measurements, an easy mistake, ends "
        f"{shown(outside)} away, however many there are.",
        Verdict.LEVEL: f"Averaging losses instead of measurements makes no clear difference here ({shown(outside)}).",
        Verdict.AHEAD: f"Averaging losses instead of measurements, which is wrong, happens to end nearer here "
        f"({shown(outside)}).",
    }[judge(outside, plain, higher_is_better=False)]
    return f"{bias} {remedy} {mistake}"


def _draw(rows: Sequence[Row], names: Sequence[str]) -> figures.Drawing:
    figure = figures.Drawing(figsize=(6.4, 3.8), layout="constrained")
    axes = figure.subplots()
    for number, name in enumerate(names):
        own = [dict(row) for row in rows if row["estimator"] == name]
        figures.curve(axes, own, OFF, name, number)
        if own[0]["predicted"] > 0:
            axes.axhline(own[0]["predicted"], color=look(number).colour, linewidth=1, linestyle=":")
    figures.finish(axes, OFF)
    figures.add_legend(figure)
    return figure
