"""Estimators for the same samples: figures, the table “who is best where”, statements and the page's fixed sections."""

import math
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fedcso.core.evaluation import GRADIENT_NORM
from fedcso.core.intervals import mean_and_interval
from fedcso.core.trace import Trace
from fedcso.experiments.bias_settings import METHODS, OUTER, BiasSettings, Cell, Contender
from fedcso.experiments.reproduction import FixedSections, Statement
from fedcso.reports import figures
from fedcso.reports.looks import look
from fedcso.reports.tables import Estimate


class Curve(NamedTuple):
    """‖∇F(x̄)‖ of the runs of a cell."""

    samples: list[float]
    """Inner samples of a client at each evaluation, mean over seeds."""
    norms: list[float]
    """‖∇F‖ at each evaluation, mean over seeds."""
    final: list[float]
    """‖∇F‖ at the end, for each seed; infinity if it is larger than at the start, or the run broke off."""

    @classmethod
    def of(cls, traces: Sequence[Trace], clients: int) -> "Curve":
        """Return the curve of some runs."""
        rows = list(zip(*(trace.rows for trace in traces), strict=False))
        return cls(
            [fmean(row["inner_samples"] for row in some) / clients for some in rows],
            [fmean(row[GRADIENT_NORM.name] for row in some) for some in rows],
            [_final(trace) for trace in traces],
        )


def _final(trace: Trace) -> float:
    first, last = (trace.rows[place][GRADIENT_NORM.name] for place in (0, -1))
    return last if trace.failure is None and last <= first else math.inf


Finals = Mapping[Cell, Sequence[float]]
"""‖∇F‖ at the end by cell, one for each seed."""


def best_of(finals: Finals, problem: str, method: str) -> tuple[Cell, list[Cell]]:
    """Return the cell with the lowest mean, and those that differ from it by less than the 95 % interval, by seeds."""
    cells = [cell for cell in finals if (cell.problem, cell.method) == (problem, method)]
    best = min(cells, key=lambda cell: fmean(finals[cell]))

    def as_good(cell: Cell) -> bool:
        if not math.isfinite(fmean(finals[cell])):
            return False
        mean, half = mean_and_interval([a - b for a, b in zip(finals[cell], finals[best], strict=True)])
        return mean <= half

    return best, [cell for cell in cells if cell != best and as_good(cell)]


def table(finals: Finals, chosen: Mapping[str, Contender]) -> list[dict[str, Any]]:
    """Return a row for each problem and method: who is best, ‖∇F‖ with every estimator, and what auto chooses."""
    lines = []
    for problem, method in dict.fromkeys((cell.problem, cell.method) for cell in finals):
        best, equals = best_of(finals, problem, method)
        also = f" (also {'; '.join(cell.contender.label for cell in equals)})" if equals else ""
        own = [cell for cell in finals if (cell.problem, cell.method) == (problem, method)]
        auto = Cell(problem, method, chosen[problem])
        lines.append(
            {"problem": problem, "method": method, "best": best.contender.label + also}
            | {cell.contender.label: _shown(finals[cell]) for cell in own}
            | {"auto": auto.contender.label, "auto / best": f"{fmean(finals[auto]) / fmean(finals[best]):.2f}"}
        )
    return lines


def _shown(values: Sequence[float]) -> str:
    return str(Estimate(*mean_and_interval(values))) if math.isfinite(fmean(values)) else "diverges"


def check(finals: Finals, chosen: Mapping[str, Contender]) -> list[Statement]:
    """Check what is expected of the estimators, and of the choice at x_0."""
    places = list(dict.fromkeys((cell.problem, cell.method) for cell in finals))
    plain, large, *_ = [c for c in dict.fromkeys(cell.contender for cell in finals) if c.estimator == "plain"]

    def mean(place: tuple[str, str], contender: Contender) -> float:
        return fmean(finals[Cell(*place, contender)])

    better = Contender("extrapolated", plain.m)
    against = {
        place: (mean(place, plain) / mean(place, better), mean(place, large) / mean(place, better)) for place in places
    }
    leads = "; ".join(f"{p}, {m}: {own:.2f} and {more:.2f}" for (p, m), (own, more) in against.items())
    wins: dict[Contender, int] = {}
    for place in places:
        best, equals = best_of(finals, *place)
        for cell in (best, *equals):
            wins[cell.contender] = wins.get(cell.contender, 0) + 1
    ranking = sorted(wins, key=lambda contender: -wins[contender])
    regret = {place: mean(place, chosen[place[0]]) / fmean(finals[best_of(finals, *place)[0]]) for place in places}
    gain = {place: mean(place, chosen[place[0]]) / mean(place, plain) for place in places}
    worst = max(regret, key=lambda place: regret[place])
    return [
        Statement(
            f"after the same samples, {better.label} has less error than plain with either m",
            all(min(pair) > 1 for pair in against.values()),
            f"‖∇F‖ of {plain.label} and of {large.label}, divided by that of {better.label}: {leads}",
        ),
        Statement(
            "no estimator is best everywhere",
            max(wins.values()) < len(places),
            "the best, or not distinguishable from it, is "
            + "; ".join(f"{contender.label} in {wins[contender]}" for contender in ranking)
            + f" of {len(places)} combinations of a problem and a method",
        ),
        Statement(
            "the estimator that auto chooses at x_0 has at most 1.5 times the error of the best one, and nowhere more "
            "than 1.1 times that of plain",
            max(regret.values()) <= 1.5 and max(gain.values()) <= 1.1,
            "; ".join(f"{problem}: {contender.label}" for problem, contender in chosen.items())
            + f". The largest error is {regret[worst]:.2f} times that of the best ({worst[0]}, {worst[1]}), and the "
            f"mean {fmean(regret.values()):.2f}; divided by that of {plain.label} the errors are "
            f"{min(gain.values()):.2f} to {max(gain.values()):.2f}.",
        ),
    ]


def draw_finals(curves: Mapping[Cell, Curve]) -> Figure:
    """Draw the errors at the end: a panel for each problem, a line for each estimator, a marker for each method."""
    problems = list(dict.fromkeys(cell.problem for cell in curves))
    contenders = list(dict.fromkeys(cell.contender for cell in curves))
    figure = Figure(figsize=(2.6 * len(problems) + 1.2, 0.5 * len(contenders) + 1), layout="constrained")
    panels = figure.subplots(1, len(problems), squeeze=False, sharey=True)[0]
    for axes, problem in zip(panels, problems, strict=True):
        for number, method in enumerate(METHODS):
            points = {
                place + 0.22 * (number - 1): curves[Cell(problem, method, contender)].final
                for place, contender in enumerate(contenders)
            }
            _draw_points(axes, points, method, number)
        axes.set_xscale("log")
        figures.plain_numbers(axes.xaxis)
        axes.set_xlabel("‖∇F(x)‖ at the end")
        _title(axes, problem)
        axes.grid(True, axis="x", alpha=0.25, linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(labelsize=8)
    panels[0].set_yticks(range(len(contenders)), [one.label for one in contenders])
    panels[0].invert_yaxis()
    figures.add_legend(figure)
    return figure


def _draw_points(axes: Axes, points: Mapping[float, Sequence[float]], label: str, number: int) -> None:
    drawn = look(number)
    means = {place: mean_and_interval(values) for place, values in points.items() if math.isfinite(fmean(values))}
    # The lower end is kept above 0, for the logarithmic axis.
    reach = [[min(half, 0.9 * mean) for mean, half in means.values()], [half for _, half in means.values()]]
    style: dict[str, Any] = {
        "color": drawn.colour,
        "marker": drawn.marker,
        "markersize": 4,
        "linestyle": "",
        "capsize": 2,
    }
    axes.errorbar([mean for mean, _ in means.values()], list(means), xerr=reach, label=label, **style)
    for place in points.keys() - means.keys():
        axes.text(
            0.99,
            place,
            "diverges",
            color=drawn.colour,
            fontsize=7,
            ha="right",
            va="center",
            transform=axes.get_yaxis_transform(),
        )


def draw_curves(curves: Mapping[Cell, Curve], method: str) -> Figure:
    """Draw the errors of one method against samples: a panel for each problem, a curve for each estimator."""
    problems = list(dict.fromkeys(cell.problem for cell in curves))
    figure = Figure(figsize=(3.1 * len(problems), 3.4), layout="constrained")
    for axes, problem in zip(figure.subplots(1, len(problems), squeeze=False)[0], problems, strict=True):
        own = {c.contender: curve for c, curve in curves.items() if (c.problem, c.method) == (problem, method)}
        for number, (contender, curve) in enumerate(own.items()):
            if all(map(math.isfinite, curve.final)):
                axes.plot(curve.samples, curve.norms, label=contender.label, **look(number).in_figure())
        figures.finish(axes, GRADIENT_NORM)
        _title(axes, problem)
        axes.set_xlabel("inner samples of a client")
        if problem != problems[0]:
            axes.set_ylabel("")
    figures.add_legend(figure)
    return figure


def _title(axes: Axes, problem: str) -> None:
    axes.set_title(f"{problem}\nf(y) = {OUTER[problem]}", fontsize=9)


def describe(config: BiasSettings) -> FixedSections:
    """Return the fixed sections of the page."""
    contenders = "; ".join(one.label for one in config.contenders)
    options = {name: dict(some) for name, some in config.problems.items()}
    given = "; ".join(
        f"{name} {', '.join(f'{k} = {v}' for k, v in some.items())}".strip() for name, some in options.items()
    )
    tuned = (
        f"learning rates {list(config.rates)} for all, tried at full length with the seeds {list(config.trial_seeds)} "
        "for every combination; the lowest mean ‖∇F‖ at the end decides"
        if len(config.rates) > 1
        else f"learning rate {config.rates[0]} for all, not tuned"
    )
    return FixedSections(
        title="Less bias for the same samples: estimators, and the choice of one at the start",
        paper="Not in the paper, which uses the plain estimator with a fixed m. The estimators are those of Hu, Chen "
        "and He (2021), He and Kasiviswanathan (2023), and Richardson extrapolation.",
        implemented=f"All estimators of `fedcso.estimators` ({contenders}) with {', '.join(METHODS)}. Every run draws "
        f"{config.samples:,} inner samples per client: cheaper estimators take more steps. Multilevel estimators have "
        "the bias of m = 64 at a cost that hardly depends on m; plain with m = 64 is what this bias costs otherwise. "
        "The mean outside f is a wrong objective, for comparison. “auto” is what `--estimator auto` chooses at x_0 for "
        "the plan of plain with m = 8, by the rule in `fedcso.theory.choice`.",
        data=f"Problems whose ∇F is known, with N = {config.clients} clients and new samples in every step: {given}.",
        hyper_parameters=f"b = {config.outer_batch}, q = {config.local_steps}, β = {config.momentum}, learning rates "
        f"that fall to nearly 0 (cosine); {tuned}; reported with the seeds {list(config.seeds)}.",
        expected="Extrapolation has less error than plain with the same samples, with either m. No estimator is best "
        "everywhere, but a look at x_0 finds one that is nearly as good.",
    )
