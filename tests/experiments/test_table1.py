"""The theorems' bounds are never violated; Table 1 in miniature; its statements on numbers made by hand."""

import math
import re
from dataclasses import replace

import pytest
from matplotlib.figure import Figure

from fedcso.algorithms import FCSG
from fedcso.core.task import Task
from fedcso.core.trace import Trace
from fedcso.engines import run_grid
from fedcso.experiments import EXPERIMENTS, table1, table1_pictures
from fedcso.experiments import table1_estimators as estimators
from fedcso.experiments import table1_runs as runs
from fedcso.experiments.complexity import Reached
from fedcso.experiments.table1 import Key
from fedcso.experiments.table1_runs import FEDERATED, METHODS, Cell, Curve
from fedcso.reports import figures
from fedcso.reports.tables import Estimate
from fedcso.theory import prescribe
from tests.command_line import FINE, INTERRUPTED, call, contents, interrupt_after, read_csv, run

TINY = {
    "seeds": [0, 1],
    "tuning_seeds": [1000],
    "theory": {"nested quadratic": [0.9, 0.8], "invariant logistic": [0.98, 0.95]},
    "tuned": {"noisy quadratic": [0.9, 0.8], "invariant logistic": [0.9, 0.8]},
    "tuned_rounds": 3,
    "period_steps": 3,
    "inner": [1, 2],
    "rates": [0.5, 0.25],
    "momenta": [0.5],
    "periods": [2],
}
FASTER = {"clients": [1, 2], "share": 0.9, "steps": 80, "factors": [1.0, 2.0]}
FEW = {"shares": {"FCSG": [0.8, 0.7], "Acc-FCSG-M": [0.8, 0.7]}, "outer_batch": 4, "most_steps": 40}
PICTURES = ["table1-samples", "table1-rounds", "table1-bounds", "table1-speed-up", "table1-estimators"]


def tiny(quick):
    config = table1.settings(quick)
    return replace(
        config,
        **TINY,
        speed_up=replace(config.speed_up, **FASTER),
        estimators=replace(config.estimators, **FEW),
    )


def make_tiny(patch):
    patch.setitem(EXPERIMENTS, "table1", replace(EXPERIMENTS["table1"], settings=tiny))


@pytest.fixture(autouse=True)
def _tiny(monkeypatch):
    make_tiny(monkeypatch)


DRAWN = {}
"""The first figure of each kind, drawn in this process."""


def draw_one(patch):
    render = figures.render

    def render_first(figure, kind):  # one figure of the five will do
        if kind not in DRAWN:
            DRAWN[kind] = render(figure, kind)
        return DRAWN[kind]

    patch.setattr(figures, "render", render_first)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run whose first figure stands for all."""
    with pytest.MonkeyPatch.context() as patch:
        draw_one(patch)
        make_tiny(patch)
        return run("reproduce", "table1", out=tmp_path_factory.mktemp("runs"))


# ------------------------------------------------------------------------------- bounds and measurements


def played(where, method, share):
    config = replace(table1.settings(False), seeds=[0, 1, 2], theory={where: [share]})
    prescribed = runs.by_theory(config)[Cell(where, method, share)]
    unit, (problem, clients) = prescribed.unit, prescribed.instance[:2]
    (traces,) = run_grid(unit.algorithms, Task(problem, clients), unit.plan, unit.seeds)
    return prescribed, traces


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("where", "share"), [("nested quadratic", 0.7), ("invariant logistic", 0.9)])
def test_the_bound_is_never_violated(where, method, share):
    prescribed, traces = played(where, method, share)
    curve = runs.curve(prescribed, traces)
    assert len(curve.measured) > 1
    assert all(mean <= most for mean, most in zip(curve.measured, curve.bound, strict=True))
    for trace in traces:  # nor by a single seed
        assert runs.curve(prescribed, [trace]).worst <= 1
    # A control: what is measured is no triviality, a bound a thousand times as low would be violated.
    assert curve.worst > 1e-3
    reached = [Cell(where, method, share).reached(prescribed.instance, trace) for trace in traces]
    assert all(one.samples <= prescribed.setting.samples for one in reached)


def test_a_curve_holds_the_bound_for_the_steps_taken_so_far():
    prescribed, traces = played("nested quadratic", "FCSG", 0.8)
    curve = runs.curve(prescribed, traces)
    terms = prescribe.bound(prescribed.setting, prescribed.instance.constants)
    at = curve.steps.index(curve.steps[-1])
    rest = sum(terms.values()) - terms["start"]
    alpha, gap = prescribed.setting.learning_rate, prescribed.instance.constants.gap
    assert curve.bound[at] == pytest.approx(rest + 2 * gap / (alpha * curve.steps[at]))
    assert curve.bound == sorted(curve.bound, reverse=True)
    assert curve.target == pytest.approx((0.8 * prescribed.instance.start) ** 2)


def test_bsgd_is_played_as_fcsg_with_one_client():
    config = table1.settings(False)
    one = runs.by_theory(config)[Cell("nested quadratic", "BSGD", 0.28)]
    assert one.unit.algorithms == [FCSG(one.setting.learning_rate)]
    assert len(one.instance.clients) == 1
    assert one.unit.plan.total_steps >= one.setting.steps
    assert one.unit.plan.local_steps > 1


def test_on_one_machine_steps_count_as_rounds():
    trace = Trace(rows=[{"gradient_norm": 0.0, "inner_samples": 7, "round": 2, "step": 64}])
    single, federated = Cell("nested quadratic", "BSGD", 0.5), Cell("nested quadratic", "FCSG", 0.5)
    config = table1.settings(False)
    assert single.reached(single.instance(config), trace) == Reached(7, 64, 64)
    assert federated.reached(federated.instance(config), trace) == Reached(7 / 4, 2, 64)


def test_what_was_best_for_the_tuning_seeds_is_reported_for_the_others():
    config = replace(tiny(True), tuned={"noisy quadratic": [0.5]}, inner=[1], clients=1)
    units = {("noisy quadratic", "FCSG"): runs.tuned(config)["noisy quadratic", "FCSG"]}

    good, bad = (
        Trace(rows=[{"gradient_norm": norm, "inner_samples": 1, "round": 0, "step": 0}]) for norm in (0.0, 100.0)
    )
    (unit,) = units["noisy quadratic", "FCSG"]
    found = {unit.name: [[bad, good, good], [good, bad, bad]]}  # the second is better for seed 1000, and only there
    best = runs.fewest(config, units, found, lambda one: one.samples)
    assert [one.samples for one in best[Cell("noisy quadratic", "FCSG", 0.5)]] == [math.inf, math.inf]


def test_with_more_clients_there_are_fewer_steps_and_larger_rates():
    config = table1.settings(False)
    units = runs.speed_up(config)
    one, many = units["FCSG", 1], units["FCSG", 64]
    assert one.plan.total_steps > 20 * many.plan.total_steps
    assert many.algorithms[0].learning_rate == pytest.approx(64 * one.algorithms[0].learning_rate)
    assert one.plan.local_steps == math.floor(42_300**0.25)
    assert many.plan.local_steps == 1
    assert {method for method, _ in units} == set(FEDERATED)


# ---------------------------------------------------------------------------------------- the command


def test_it_leaves_figures_tables_statements_and_a_report(finished):
    for name in PICTURES:
        assert (finished / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    document = (finished / "reproduction.md").read_text()
    assert len(re.findall(r"^- (HOLDS|DOES NOT HOLD): “.+” Measured: ", document, re.MULTILINE)) == 7
    assert re.search(r"^- HOLDS: “\(1/T\)", document, re.MULTILINE)
    assert re.search(r"^- HOLDS: “the corollaries' T and m", document, re.MULTILINE)


def test_every_problem_method_and_accuracy_is_measured(finished):
    rows = read_csv(finished / "complexity.csv")
    seen = {(row["settings"], row["problem"], row["method"], row["share"], row["seed"]) for row in rows}
    assert len(seen) == len(rows) == (2 + 2) * 2 * len(METHODS) * 2
    assert all(0 < float(row["samples"]) < math.inf for row in rows if row["settings"] == "theory")
    assert len(read_csv(finished / "speed-up.csv")) == len(FEDERATED) * 2 * 2
    table = read_csv(finished / "table.csv")
    assert [row["samples, proven"] for row in table[: len(METHODS)]] == ["6", "6", "5", "6", "5"]
    assert [row["rounds, proven"] for row in table[: len(METHODS)]] == ["3", "3", "2", "4", "2"]


def test_interrupted_and_resumed_it_ends_the_same(finished, tmp_path, monkeypatch):
    draw_one(monkeypatch)
    with monkeypatch.context() as patch:
        interrupt_after(patch, rounds=1, unit="tuned noisy quadratic FCSG-M m=2")
        folder = run("reproduce", "table1", out=tmp_path, code=INTERRUPTED)
    assert call("resume", folder).code == FINE
    (folder / "reproduction.md").unlink()  # names the seconds of computing
    expected = contents(finished)
    expected.pop("reproduction.md")
    assert contents(folder) == expected


def test_quick_is_smaller_in_everything():
    quick, whole = table1.settings(True), table1.settings(False)
    assert not set(whole.seeds) & set(whole.tuning_seeds)
    for name in ("seeds", "inner", "rates"):
        assert len(getattr(quick, name)) < len(getattr(whole, name))
    assert whole.speed_up.clients == [2**k for k in range(7)]


# ------------------------------------------------------------------------------- statements made by hand


def exponents(change=lambda key: 0.0):
    return {
        key: Estimate(table1.proven(key.method, key.what) + change(key), 0.1)
        for key in (
            Key(kind, where, method, what)
            for kind, where in (("theory", "nested quadratic"), ("tuned", "noisy quadratic"))
            for method in METHODS
            for what in ("samples", "rounds")
        )
    }


def verdicts(share=0.5, found=None, worst=0.9, slope=-1.0, last=10.0):
    cells = [Cell("nested quadratic", method, 0.5) for method in METHODS]
    curves = {cell: Curve([1, 2], [worst, 0.1], [1.0, 1.0], 0.5) for cell in cells}
    slopes = dict.fromkeys(FEDERATED, Estimate(slope, 0.02))
    steps = {(method, n): [last, 600 / n] for method in FEDERATED for n in (1, 64)}
    made = table1.check(dict.fromkeys(cells, share), found or exponents(), curves, slopes, steps)
    return [statement.holds for statement in made]


def test_all_statements_hold_where_they_are_made_to():
    assert verdicts() == [True] * 5


def test_a_bound_that_is_violated_is_told():
    assert verdicts(worst=1.01) == [False, True, True, True, True]


def test_more_samples_than_prescribed_are_told():
    assert verdicts(share=1.01) == [True, False, True, True, True]
    assert verdicts(share=math.inf)[1] is False


@pytest.mark.parametrize("method", METHODS)
def test_a_single_exponent_that_is_too_large_is_told(method):
    def change(key):
        return 0.6 * (key.method == method and key.what == "rounds" and key.settings == "tuned")

    assert verdicts(found=exponents(change)) == [True, True, True, False, True]


@pytest.mark.parametrize(("slope", "holds"), [(-0.86, True), (-1.14, True), (-0.84, False), (-1.16, False)])
def test_the_speed_up_is_linear_if_the_slope_is_close_to_minus_one(slope, holds):
    assert verdicts(slope=slope)[-1] is holds


def test_a_speed_up_that_some_seed_did_not_live_to_see_does_not_hold():
    assert verdicts(last=math.inf) == [True, True, True, True, False]


def test_pictures_are_drawn_also_where_something_was_never_reached():
    rows = [
        {"settings": kind, "problem": where, "method": method, "share": share, "samples": math.inf, "rounds": 3.0}
        for kind, where in (("theory", "a"), ("theory", "b"), ("tuned", "c"), ("tuned", "b"))
        for method in METHODS
        for share in (0.5, 0.25)
    ]
    curves = {Cell("a", method, 0.5): Curve([1, 2], [1.0, 0.5], [3.0, 2.0], 0.5) for method in METHODS}
    steps = {(method, n): [100.0 / n] for method in FEDERATED for n in (1, 2)}
    slopes = dict.fromkeys(FEDERATED, Estimate(-1.0, math.nan))
    cells = [estimators.Cell("FCSG", name, share) for name in estimators.NAMES for share in (0.2, 0.1)]
    by_estimator = {cell: [Reached(math.inf if cell.share == 0.1 else 9.0, 3.0, 3.0)] for cell in cells}
    drawn = table1_pictures.pictures(rows, curves, steps, slopes, by_estimator)
    assert [picture.name for picture in drawn] == PICTURES
    assert all(isinstance(picture.figure, Figure) for picture in drawn)
