"""Fixed points of tracking methods: the formula against runs of the package, and statements on values made by hand."""

import math

import pytest
import torch

from fedcso.core.plan import Plan
from fedcso.engines import run_grid
from fedcso.experiments import tracking
from fedcso.experiments.fixed_points import BOTH, COMPOSITIONAL, CONDITIONAL, RULES, SCENES, Point
from fedcso.problems import PROBLEMS, NestedQuadratic
from fedcso.reports.tables import Estimate
from tests.command_line import read_csv, run, without_drawing
from tests.experiments.miniature import shrink

STANDARD_ERRORS = 4.5
"""The largest distance from the formula; seeds are fixed, so a test passes always or never."""


@pytest.mark.parametrize("rate", [0.05, 0.2])
@pytest.mark.parametrize(("b", "rule"), [(1, "mean"), (4, "mean"), (4, "each"), (4, "FCSG")])
def test_the_formula_holds_for_every_step_size(rate, b, rule):
    """Also for steps that are not small, where x and y move at the same speed."""
    points = [Point(BOTH, rule, gamma, b, 2) for gamma in ([1.0] if rule == "FCSG" else [0.1, 0.9])]
    scene = {"coupling": BOTH.coupling, "noise": BOTH.noise}
    task = PROBLEMS["nested_quadratic"](clients=2, dimension=400, heterogeneity=0.0, **scene)
    plan = Plan(rounds=100, local_steps=2, outer_batch=b, inner_batch=2, evaluate_every=100)
    found = run_grid([point.algorithm(rate) for point in points], task, plan, [0, 1])
    for point, traces in zip(points, found, strict=True):
        x = torch.cat([trace.last for trace in traces])
        assert abs(x.mean() - point.formula) < STANDARD_ERRORS * x.std() / math.sqrt(len(x))
        wrong = BOTH.fixed_point(point.weight + (0.5 if point.weight < 0.5 else -0.5), 2)  # a control
        assert abs(x.mean() - wrong) > STANDARD_ERRORS * x.std() / math.sqrt(len(x))


@pytest.mark.parametrize("scene", SCENES, ids=str)
def test_the_optimum_is_the_problems(scene):
    problem = NestedQuadratic(1, scene.coupling, noise=scene.noise)
    assert scene.optimum() == pytest.approx(float(problem.optimum(problem.centres(2, heterogeneity=0.0))))


def test_weights_say_which_methods_agree():
    assert Point(BOTH, "mean", 0.9, 1, 3).formula == Point(BOTH, "each", 0.9, 7, 3).formula
    assert Point(BOTH, "each", 1.0, 5, 3).formula == Point(BOTH, "FCSG", 1.0, 5, 3).formula
    assert Point(BOTH, "mean", 1.0, 5, 1).formula == pytest.approx(
        BOTH.optimum()
    )  # by accident: Var μ = (Var μ + τ²)/5
    assert Point(COMPOSITIONAL, "mean", 0.1, 5, 1).error < Point(COMPOSITIONAL, "FCSG", 1.0, 5, 1).error
    assert Point(CONDITIONAL, "mean", 0.9, 5, 10**9).error > 0.05 > Point(CONDITIONAL, "FCSG", 1.0, 5, 10**9).error


def measured(shift=0.0, where=lambda point: True):
    """Values on the formula, but for a shift of some."""
    points = tracking.settings(quick=False).points()
    return {point: Estimate(point.formula + shift * where(point), 0.001) for point in points}


def verdicts(*arguments):
    return [statement.holds for statement in tracking.check(measured(*arguments))]


def test_all_statements_hold_on_the_formula():
    assert verdicts() == [True, True, True]


def test_one_point_off_the_formula_is_enough():
    off = Point(BOTH, "each", 0.5, 5, 1)
    assert verdicts(0.002, lambda point: point == off) == [False, True, True]
    first, *_ = tracking.check(measured(0.002, lambda point: point == off))
    count = len(measured())
    assert first.measured.startswith(f"{count - 1} of {count} means are within their intervals")
    assert "farthest off is Local-SCGD, y per sample at γ = 0.5, b = 5, m = 1" in first.measured


def test_the_second_does_not_hold_if_fcsg_is_no_nearer():
    where = lambda point: point.scene == CONDITIONAL and point.rule == "FCSG"  # noqa: E731
    assert verdicts(0.2, where) == [False, False, True]


def test_the_third_does_not_hold_if_tracking_is_farther_somewhere():
    where = lambda point: point == Point(COMPOSITIONAL, "mean", 0.1, 20, 1)  # noqa: E731
    assert verdicts(-0.9, where) == [False, True, False]


def test_there_is_a_panel_for_each_scene_with_a_line_for_each_m():
    figure = tracking.draw(measured())
    assert len(figure.axes) == len(SCENES)
    for axes in figure.axes:
        assert {one.get_label() for one in axes.containers} == set(RULES.values())
        assert [line.get_label() for line in axes.lines if line.get_label().startswith("formula")] == [
            "formula, m = 1",
            "formula, m = 8",
        ]


def test_it_leaves_a_table_of_all_points(tmp_path, monkeypatch):
    without_drawing(monkeypatch)
    shrink(monkeypatch, "tracking", dimension=20, rounds=4, batches=[[1, 1], [5, 1]], seeds=[0])
    folder = run("reproduce", "tracking", out=tmp_path)
    table = read_csv(folder / "table.csv")
    assert len(table) == len(SCENES) * (4 + 7)  # with b = 1 both rules are the same
    assert (folder / "tracking.png").is_file()
    assert "# Tracking: compositional and conditional optimisation" in (folder / "reproduction.md").read_text()


def test_intervals_hold_for_all_points_together():
    """The half-width of a single 95 % interval over 100 values with deviation 1 would be 0.198."""
    traces = [type("Trace", (), {"measured": {"mean": 2.0, "deviation": 1.0}})() for _ in range(4)]
    value = tracking._interval(traces, 25, comparisons=1)
    assert (value.mean, value.half_width) == (2.0, pytest.approx(0.198, abs=0.001))
    assert tracking._interval(traces, 25, comparisons=100).half_width == pytest.approx(0.361, abs=0.005)
