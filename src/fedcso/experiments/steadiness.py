"""Figure 1, third statement: when FCSG-M is steadier than FCSG, and what that costs.

With u ← (1 − β)u + βG, momentum does not lower the stationary variance of x at an equal learning rate: it is about
ασ²/(2Λ) for every β, where Λ is the curvature and σ² the noise of G. It smooths the path: what falls is the change from
one communication round to the next, and only if u remembers longer than a round, 1/β ≳ q. A memory that is too long has
a cost: for β < 4αΛ the path swings like a pendulum, and settles only after several times 2/β steps.

So both methods are run with the SAME learning rate for every β of the paper's grid (β = 1 is FCSG), and three
quantities stand side by side: the change from round to round, the rounds to get near the end, and the accuracy there.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from statistics import fmean

from matplotlib.figure import Figure

from fedcso.algorithms import FCSGM
from fedcso.core.intervals import mean_and_interval
from fedcso.core.plan import Plan
from fedcso.core.task import Task
from fedcso.core.trace import Trace
from fedcso.experiments.figure1_settings import at_end
from fedcso.experiments.reproduction import Picture, Statement
from fedcso.problems.invariant_logistic import ACCURACY
from fedcso.reports import figures
from fedcso.reports.looks import look
from fedcso.runs.study import Unit

FCSG = 1.0
"""The β with which FCSG-M is FCSG."""
NEAR = 0.02
"""A run is near the end when its accuracy is within this of FCSG's mean at the end."""

ByMomentum = Mapping[float, Sequence[Trace]]
"""Runs of FCSG-M with the same learning rate, by β; one for each seed, the same seeds for every β."""


def unit(task: Task, plan: Plan, rate: float, momenta: Sequence[float], seeds: Sequence[int], noise: float) -> Unit:
    """Return the runs with one learning rate and every β, and β = 1."""
    methods = [FCSGM(rate, momentum) for momentum in (*momenta, FCSG)]
    return Unit(f"steadiness noise={noise:g}", task, plan, methods, seeds)


def change(trace: Trace) -> float:
    """Return the mean change of accuracy from one evaluation to the next in the second half of a run."""
    late = trace.column(ACCURACY.name)[len(trace.rows) // 2 :]
    return fmean(abs(after - before) for before, after in pairwise(late))


def rounds_to(level: float) -> Callable[[Trace], float]:
    """Return a function that finds the first evaluated round with that accuracy; the last round if there is none."""

    def first(trace: Trace) -> float:
        rounds = [row["round"] for row in trace.rows if row[ACCURACY.name] >= level]
        return float(rounds[0] if rounds else trace.rows[-1]["round"])

    return first


def _measures(runs: ByMomentum) -> dict[str, Callable[[Trace], float]]:
    """Return what the figure shows, by title."""
    near = fmean(at_end(run) for run in runs[FCSG]) - NEAR
    return {
        "change of accuracy from round to round": change,
        f"rounds until within {NEAR:g} of FCSG's end": rounds_to(near),
        "accuracy at the end": at_end,
    }


def picture(found: Mapping[float, ByMomentum]) -> Picture:
    """Draw the three quantities against β, with a curve for every noise ratio."""
    figure = Figure(figsize=(12, 3.8), layout="constrained")
    cells = figure.subplots(1, 3)
    for number, (noise, runs) in enumerate(found.items()):
        momenta = sorted(runs)
        for axes, (title, measure) in zip(cells, _measures(runs).items(), strict=True):
            values = [mean_and_interval([measure(run) for run in runs[momentum]]) for momentum in momenta]
            means, widths = zip(*values, strict=True)
            drawn = look(number)
            axes.errorbar(momenta, means, widths, label=f"noise ratio {noise:g}", capsize=2, **drawn.in_figure())
            axes.set_xscale("log")
            axes.set_xlabel("β (1 is FCSG)")
            axes.set_ylabel(title)
            axes.grid(True, alpha=0.25, linewidth=0.6)
            axes.spines[["top", "right"]].set_visible(False)
    figures.add_legend(figure)
    caption = (
        "FCSG-M at m = 1 with the learning rate of FCSG, for every β: how much accuracy changes from round to round, "
        "and how fast it is."
    )
    return Picture("figure1-steadiness", figure, caption)


def check(found: Mapping[float, ByMomentum], local_steps: int) -> Statement:
    """Check that some β makes FCSG-M change less from round to round than FCSG; say what every β does and costs."""
    momenta = sorted(momentum for momentum in next(iter(found.values())) if momentum != FCSG)
    steadier = [
        momentum
        for momentum in momenta
        if all(_below_zero(runs, momentum, 1 - 0.05 / len(momenta)) for runs in found.values())
    ]
    return Statement(
        "when batch size is small, FCSG-M has a more stable performance than FCSG",
        bool(steadier),
        f"at m = 1 with FCSG's learning rate, mean over noise ratios: {'; '.join(_describe(found))}. The change is "
        "that of accuracy from one round to the next in the second half; the rounds are those until the accuracy is "
        f"within {NEAR:g} of FCSG's at the end. “More stable” means that the change is smaller at every noise ratio, "
        f"seed by seed, in intervals that hold for all β at once. It must be for some β, and is for β = "
        f"{', '.join(f'{momentum:g}' for momentum in steadier) or 'none'} (1/q = {1 / local_steps:g}).",
    )


def _below_zero(runs: ByMomentum, momentum: float, level: float) -> bool:
    """Return whether the change with this β minus that of FCSG is below 0, with its whole interval."""
    pairs = zip(runs[momentum], runs[FCSG], strict=True)
    mean, half_width = mean_and_interval([change(one) - change(other) for one, other in pairs], level)
    return mean + half_width < 0


def _describe(found: Mapping[float, ByMomentum]) -> list[str]:
    """Return a phrase for every β: the change, the rounds and the accuracy at the end, as means over noise ratios."""
    phrases = []
    for momentum in sorted(next(iter(found.values()))):
        changed, rounds, accuracy = (
            fmean(values)
            for values in zip(
                *[
                    [fmean(measure(run) for run in runs[momentum]) for measure in _measures(runs).values()]
                    for runs in found.values()
                ],
                strict=True,
            )
        )
        name = "FCSG" if momentum == FCSG else f"β = {momentum:g}"
        phrases.append(f"{name}: change {changed:.5f}, {rounds:.1f} rounds, accuracy {accuracy:.4f}")
    return phrases
