"""Where one tracked inner value is right, and where it is wrong: fixed points on the nested quadratic.

The mean of x in the stationary state is measured and compared with its closed form (`fixed_points`), where the inner
samples depend on ξ and where they do not.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fedcso.core.intervals import student_t
from fedcso.core.plan import Plan
from fedcso.core.trace import Trace
from fedcso.experiments.experiment import Experiment, Runner, Settings
from fedcso.experiments.fixed_points import COMPOSITIONAL, CONDITIONAL, RULES, SCENES, Point, Scene
from fedcso.experiments.reproduction import FixedSections, Picture, Statement, conclude
from fedcso.problems import PROBLEMS
from fedcso.reports import figures
from fedcso.reports.looks import look
from fedcso.reports.tables import Estimate
from fedcso.runs.folder import RunFolder
from fedcso.runs.study import Part, Unit


@dataclass(frozen=True, kw_only=True)
class TrackingSettings(Settings):
    """The settings of the experiment."""

    clients: int = 4
    dimension: int = 200
    """The number of coordinates, which are independent copies of the same problem."""
    rounds: int = 100
    local_steps: int = 5
    learning_rate: float = 0.02
    trackings: Sequence[float] = (0.1, 0.5, 0.9)
    batches: Sequence[Sequence[int]]
    """Pairs of b and m."""
    seeds: Sequence[int]

    def points(self) -> list[Point]:
        """Return all points to measure."""
        return [
            Point(scene, rule, tracking, b, m)
            for scene in SCENES
            for b, m in self.batches
            for rule in (RULES if b > 1 else ("FCSG", "mean"))  # with b = 1 both rules are the same
            for tracking in ([1.0] if rule == "FCSG" else self.trackings)
        ]


def settings(quick: bool) -> TrackingSettings:
    """Return the settings of the full experiment; `quick` has fewer points and seeds."""
    return TrackingSettings(
        batches=[[5, 1], [5, 8]] if quick else [[1, 1], [5, 1], [20, 1], [5, 8]],
        seeds=list(range(2 if quick else 8)),
    )


def execute(folder: RunFolder, config: TrackingSettings) -> None:
    """Run what is left, draw the figure and check the statements."""
    run = Runner(folder, config)
    together = {name: list(points) for name, points in groupby(config.points(), _unit_name)}
    found = run.outcomes([_unit(config, name, points) for name, points in together.items()], measure)
    measured = {
        point: _interval(traces, config.dimension, len(config.points()))
        for name, points in together.items()
        for point, traces in zip(points, found[name], strict=True)
    }
    caption = (
        "The mean of x in the stationary state against w, the weight of a sample's own inner value. Lines: the "
        "formula; dots: measured, with simultaneous 95 % intervals (smaller than most dots)."
    )
    conclude(
        folder,
        describe(config),
        [Picture("tracking", draw(measured), caption)],
        _table(measured),
        check(measured),
        run.seconds,
    )


def _unit_name(point: Point) -> str:
    """Return the name of the unit that a point belongs to, with those that differ from it in γ only."""
    return f"{RULES[point.rule]} b={point.b} m={point.m} {point.scene}"


def _unit(config: TrackingSettings, name: str, points: Sequence[Point]) -> Unit:
    scene = points[0].scene
    task = PROBLEMS["nested_quadratic"](
        clients=config.clients,
        dimension=config.dimension,
        coupling=scene.coupling,
        noise=scene.noise,
        heterogeneity=0.0,
    )
    plan = Plan(config.rounds, config.local_steps, points[0].b, points[0].m, evaluate_every=config.rounds)
    methods = [point.algorithm(config.learning_rate) for point in points]
    labels = {"dimension": config.dimension, "clients": config.clients}
    return Unit(name, task, plan, methods, config.seeds, labels=labels)


def measure(part: Part, trace: Trace) -> dict[str, float]:
    """Return mean and standard deviation of the last x̄ over its coordinates, which are independent copies."""
    return {"mean": float(trace.last.mean()), "deviation": float(trace.last.std())}


def _interval(traces: Sequence[Trace], dimension: int, comparisons: int) -> Estimate:
    """Return the mean over coordinates and seeds with an interval that holds for all comparisons at once."""
    size = dimension * len(traces)
    mean = math.fsum(one.measured["mean"] for one in traces) / len(traces)
    variance = math.fsum(one.measured["deviation"] ** 2 for one in traces) / len(traces)
    return Estimate(mean, student_t(size - 1, 1 - 0.05 / comparisons) * math.sqrt(variance / size))


Measured = Mapping[Point, Estimate]


def draw(measured: Measured) -> Figure:
    """Draw a panel for each scene: the formula for every m, and what was measured."""
    figure = Figure(figsize=(12, 4.2), layout="constrained")
    for axes, scene in zip(figure.subplots(1, len(SCENES)), SCENES, strict=True):
        _panel(axes, scene, {point: value for point, value in measured.items() if point.scene == scene})
    figures.add_legend(figure)
    return figure


def _panel(axes: Axes, scene: Scene, measured: Measured) -> None:
    weights = [i / 100 for i in range(101)]
    for number, m in enumerate(sorted({point.m for point in measured})):
        line = [scene.fixed_point(w, m) for w in weights]
        style: Any = ("-", "--", "-.", ":")[number % 4]
        axes.plot(weights, line, color="#8A8A8A", linewidth=1.1, linestyle=style, label=f"formula, m = {m}")
    axes.axhline(scene.optimum(), color="#000000", linewidth=1.6, label="x*")
    for number, (rule, title) in enumerate(RULES.items()):
        some = {point: value for point, value in measured.items() if point.rule == rule}
        axes.errorbar(
            [point.weight for point in some],
            [value.mean for value in some.values()],
            [value.half_width for value in some.values()],
            color=look(number).colour,
            marker=look(number).marker,
            linestyle="none",
            markersize=5,
            label=title,
        )
    axes.set_title(f"{scene.title}: κ = {scene.coupling:g}, τ = {scene.noise:g}", fontsize=10)
    axes.set_xlabel("w, weight of the sample's own inner value")
    axes.set_ylabel("mean of x in the stationary state")
    axes.grid(True, alpha=0.25, linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)


def _table(measured: Measured) -> list[dict[str, Any]]:
    return [
        {
            "scene": point.scene.title,
            "m": point.m,
            "b": point.b,
            "method": RULES[point.rule],
            "γ": f"{point.tracking:g}",
            "w": f"{point.weight:.3g}",
            "measured": value,
            "formula": f"{point.formula:.4f}",
            "x*": f"{point.scene.optimum():.4f}",
        }
        for point, value in measured.items()
    ]


def check(measured: Measured) -> list[Statement]:
    """Check the formula, that tracking is wrong where η depends on ξ, and that it is right where it does not."""
    off = {point: abs(value.mean - point.formula) / value.half_width for point, value in measured.items()}
    worst = max(off, key=off.__getitem__)
    on_formula = Statement(
        "the fixed point of Local-SCGD and FCSG is E[μξ]/(E[μ]² + w(Var μ + τ²/m)), with w = γ/b, γ, or 1 for FCSG",
        all(share <= 1 for share in off.values()),
        f"{sum(share <= 1 for share in off.values())} of {len(off)} means are within their intervals, which hold "
        f"simultaneously with 95 % confidence and are at most ±{max(v.half_width for v in measured.values()):.4f}; "
        f"farthest off is {RULES[worst.rule]} at γ = {worst.tracking:g}, b = {worst.b}, m = {worst.m} "
        f"({worst.scene.title}): {measured[worst]}, formula {worst.formula:.4f}.",
    )

    (fcsg, ours), (per_step, theirs) = (_nearest(measured, rule) for rule in ("FCSG", "mean"))
    wrong = Statement(
        "where η depends on ξ, more inner samples lead FCSG to x*, but not Local-SCGD with one y for a step",
        theirs - ours > measured[fcsg].half_width + measured[per_step].half_width,
        f"κ = {CONDITIONAL.coupling:g}, m = {fcsg.m}, b = {fcsg.b}: FCSG is {ours:.4f} from x* = "
        f"{CONDITIONAL.optimum():.4f}, Local-SCGD at its best {theirs:.4f} (γ = {per_step.tracking:g}).",
    )
    nearer = {
        (point, other): abs(measured[point].mean - COMPOSITIONAL.optimum())
        < abs(measured[other].mean - COMPOSITIONAL.optimum())
        for point in measured
        for other in measured
        if point.scene == other.scene == COMPOSITIONAL
        and (point.b, point.m, other.rule) == (other.b, other.m, "FCSG")
        and point.rule != "FCSG"
    }
    gain = [(point, other) for point, other in nearer if point.rule == "mean"]
    right = Statement(
        "where η is independent of ξ, Local-SCGD is closer to x* than FCSG with the same samples",
        all(nearer.values()),
        f"in {sum(nearer.values())} of {len(nearer)} comparisons; with one y for a step, the distance from x* is "
        f"{min(p.error / o.error for p, o in gain):.3f} to {max(p.error / o.error for p, o in gain):.3f} times FCSG's "
        "by the formula.",
    )
    return [on_formula, wrong, right]


def _nearest(measured: Measured, rule: str) -> tuple[Point, float]:
    """Return the point of a rule nearest to x* where η depends on ξ and m is largest, and its distance."""
    m = max(point.m for point in measured)
    distances = {
        point: abs(value.mean - CONDITIONAL.optimum())
        for point, value in measured.items()
        if (point.scene, point.rule, point.m) == (CONDITIONAL, rule, m)
    }
    return min(distances.items(), key=lambda item: item[1])


def describe(config: TrackingSettings) -> FixedSections:
    """Return the fixed sections of the page."""
    return FixedSections(
        title="Tracking: compositional and conditional optimisation",
        paper="The paper compares FCSG with Local-SCGD and Local-SCGDM, which track one inner value, and explains "
        "their results in Figures 2 and 3 by the dependence of the inner samples on ξ. It has no such experiment.",
        implemented="FCSG, and Local-SCGD with both rules, on a quadratic whose optimum and fixed points are known: "
        "f_ξ(y) = ½(y − ξ)², g_η(x, ξ) = ηx, ξ ~ N(1, 1), η | ξ ~ N(1 + κξ, τ²). All methods have the fixed point "
        "E[μξ]/(E[μ]² + w(Var μ + τ²/m)), where μ = E[η | ξ] and w is the weight of a sample's own inner value in the "
        "point at which its ∇f is taken: 1 for FCSG, γ/b for Local-SCGD with one y for a step, γ with one for each "
        "sample. The optimum is E[μξ]/(E[μ]² + Var μ).",
        data=f"Synthetic; {config.clients} clients with the same distribution, and {config.dimension} coordinates that "
        "are independent copies of the problem.",
        hyper_parameters=f"Step size {config.learning_rate:g}, q = {config.local_steps}, "
        f"{config.rounds * config.local_steps} steps, γ ∈ {list(config.trackings)}, "
        f"(b, m) ∈ {[tuple(pair) for pair in config.batches]}, seeds {list(config.seeds)}. Intervals are over "
        "coordinates and seeds of the last x̄, and wide enough to hold for all points at once.",
        expected="All means are on the formula. Where η depends on ξ (Var μ > 0), Local-SCGD with one y for a step "
        "misses the optimum for every m, and the more so the larger b is; where it does not (κ = 0), tracking reduces "
        "the bias.",
    )


TRACKING = Experiment("Where one tracked inner value is right, and where it is wrong.", settings, execute)
