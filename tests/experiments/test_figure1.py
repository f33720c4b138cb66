"""Figure 1 in miniature, and its statements on traces made by hand."""

import re
import shutil

import pytest
from matplotlib.figure import Figure

from fedcso.algorithms import FCSG, FCSGM, AccFCSGM
from fedcso.core.errors import FedcsoError
from fedcso.core.intervals import mean_and_interval
from fedcso.core.trace import Trace
from fedcso.experiments import figure1, steadiness
from fedcso.experiments import figure1_report as report
from fedcso.experiments.figure1_settings import INNER, METHODS, MOMENTA, OUTSIDE, PANELS, RATIOS, Panel
from fedcso.reports import figures
from tests.command_line import (
    BAD_INPUT,
    FINE,
    INTERRUPTED,
    call,
    contents,
    folders,
    interrupt_after,
    read_csv,
    run,
    without_drawing,
)
from tests.experiments.miniature import shrink

TINY = {
    "rounds": 2,
    "local_steps": 2,
    "seeds": [0, 1],
    "tuning_seeds": [1000, 1001],
    "rates": [0.1, 0.01],
    "momenta": [0.5],
    "clients": 2,
    "test_points": 20,
}
PICTURES = ["figure1-accuracy", "figure1-gradient-norm", "figure1-mean-outside", "figure1-steadiness"]


def make_tiny(patch):
    shrink(patch, "figure1", **TINY)


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    make_tiny(monkeypatch)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run without figures."""
    with pytest.MonkeyPatch.context() as patch:
        without_drawing(patch)
        make_tiny(patch)
        return run("reproduce", "figure1", out=tmp_path_factory.mktemp("runs"))


def test_it_leaves_figures_tables_statements_and_a_report(tmp_path, monkeypatch):
    drawn, render = {}, figures.render

    def render_first(figure, kind):  # one figure will do
        if kind not in drawn:
            drawn[kind] = render(figure, kind)
        return drawn[kind]

    monkeypatch.setattr(figures, "render", render_first)
    outcome = call("reproduce", "figure1", "--out", tmp_path)
    assert outcome.code == FINE
    (folder,) = folders(tmp_path)
    for name in PICTURES:
        assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert (folder / f"{name}.pdf").read_bytes().startswith(b"%PDF-")
    page = (folder / "report.html").read_text()
    assert page.count("data:image/png;base64,") == len(PICTURES)
    assert not re.search(r"https?://", page)
    document = (folder / "reproduction.md").read_text()
    assert len(re.findall(r"^- (HOLDS|DOES NOT HOLD): “.+” Measured: ", document, re.MULTILINE)) == 3
    assert len(re.findall(r"^- (HOLDS|DOES NOT HOLD)", outcome.out, re.MULTILINE)) == 3


def test_every_panel_and_method_is_measured_and_tuned(finished):
    every = {f"{method} {panel}" for panel in PANELS for method in (*METHODS, OUTSIDE)}
    metrics = read_csv(finished / "metrics.csv")
    assert {row["algorithm"] for row in metrics} == every
    assert {row["seed"] for row in metrics} == {"0", "1"}
    assert len(read_csv(finished / "table.csv")) == len(every)
    tuning = read_csv(finished / "tuning.csv")
    assert len(tuning) == len(PANELS) * len(METHODS) * 2
    assert {row["learning_rate"] for row in tuning} == {"0.1", "0.01"}


def test_the_best_by_validation_is_reported(finished):
    best = {}
    for row in read_csv(finished / "tuning.csv"):
        key = (row["m"], row["noise"], row["algorithm"])
        score = float(row["validation_accuracy"])
        if key not in best or score > best[key][0]:
            best[key] = score, row["learning_rate"]
    for row in read_csv(finished / "table.csv"):
        method = "FCSG-M" if row["algorithm"] == OUTSIDE else row["algorithm"]
        assert row["learning rate"] == best[row["m"], row["noise ratio"], method][1]


@pytest.mark.parametrize("unit", ["tune FCSG-M m=10 noise=1.5", "Acc-FCSG-M m=100 noise=2"])
def test_interrupted_and_resumed_it_ends_the_same(finished, tmp_path, monkeypatch, unit):
    without_drawing(monkeypatch)
    with monkeypatch.context() as patch:
        interrupt_after(patch, rounds=1, unit=unit)
        folder = run("reproduce", "figure1", out=tmp_path, code=INTERRUPTED)
    assert call("resume", folder).code == FINE
    (folder / "reproduction.md").unlink()  # names the seconds of computing
    expected = contents(finished)
    expected.pop("reproduction.md")
    assert contents(folder) == expected


def test_reporting_it_again_spoils_nothing(finished, tmp_path, monkeypatch):
    without_drawing(monkeypatch)
    folder = shutil.copytree(finished, tmp_path / "copy")
    outcome = call("report", folder)
    assert outcome.code in (FINE, BAD_INPUT)
    assert contents(folder) == contents(finished)


def test_the_quick_version_says_that_it_is(tmp_path, monkeypatch):
    without_drawing(monkeypatch)
    monkeypatch.setattr(report, "panels", lambda *_: Figure())
    folder = run("reproduce", "figure1", "--quick", out=tmp_path)
    assert "quick version, which is too short" in (folder / "reproduction.md").read_text()


def test_quick_is_smaller_in_everything():
    quick, whole = figure1.settings(True), figure1.settings(False)
    assert quick.rounds < whole.rounds
    assert len(quick.seeds) < len(whole.seeds)
    assert not set(whole.seeds) & set(whole.tuning_seeds)


def test_the_grids_are_the_papers():
    config = figure1.settings(False)
    assert figure1.grid("FCSG", config) == [FCSG(0.01), FCSG(0.005), FCSG(0.001)]
    assert len(figure1.grid("FCSG-M", config)) == len(figure1.grid("Acc-FCSG-M", config)) == 15
    assert figure1.grid("FCSG-M", config)[1] == FCSGM(0.01, 0.01)
    assert type(figure1.grid("Acc-FCSG-M", config)[0]) is AccFCSGM


# ------------------------------------------------------------------------- statements made by hand

SEEDS = 3


def trace(accuracy, norm, jump, seed, slow=0):
    """Accuracy that goes up and down by `jump` around a level, after some slow rounds, and a constant gradient norm."""
    return Trace(
        rows=[
            {"round": r, "gradient_norm": norm}
            | dict.fromkeys(
                ["accuracy", "validation_accuracy"],
                0.5 if r < slow else accuracy + seed * 1e-5 + jump * (-1) ** r / 2,
            )
            for r in range(40)
        ]
    )


def made(levels=None, norms=None):
    """Results in which both statements hold, but for what is given: functions of method and panel."""
    levels = levels or (lambda method, panel: 0.9 - 0.02 * panel.ratio * (panel.m == 1))
    norms = norms or (lambda method, panel: 0.1 * (1 + panel.ratio * (panel.m == 1)))
    return {
        (method, panel): [trace(levels(method, panel), norms(method, panel), 0.01, seed) for seed in range(SEEDS)]
        for method in METHODS
        for panel in PANELS
    }


def verdicts(**changes):
    return [statement.holds for statement in report.check(made(**changes))]


def test_the_first_two_statements_hold_where_they_are_made_to():
    assert verdicts() == [True, True]


def test_the_first_does_not_hold_if_noise_costs_no_accuracy():
    assert verdicts(levels=lambda method, panel: 0.9 - 0.02 * (3 - panel.ratio) * (panel.m == 1)) == [False, True]


def test_the_first_does_not_hold_if_the_bias_does_not_grow():
    assert verdicts(norms=lambda method, panel: 0.1) == [False, True]
    assert verdicts(norms=lambda method, panel: 0.1 * (1 + (3 - panel.ratio) * (panel.m == 1)))[0] is False


@pytest.mark.parametrize(("gap", "holds"), [(0.004, True), (-0.004, True), (0.006, False), (-0.006, False)])
def test_the_second_holds_if_the_methods_differ_by_little(gap, holds):
    def levels(method, panel):
        apart = gap * (method == "FCSG-M" and panel == Panel(100, 1.5))
        return 0.9 - 0.02 * panel.ratio * (panel.m == 1) + apart

    assert verdicts(levels=levels) == [True, holds]


def test_the_numbers_stand_in_the_statements():
    first, second = report.check(made())
    assert "0.0200, 0.0300, 0.0400" in first.measured  # what m = 1 costs
    assert "2.00, 2.50, 3.00" in first.measured  # times the gradient norm
    assert "within 25 % of its gradient norm: 10, 10, 10" in first.measured
    assert second.measured.count("0.0000 ± 0.0000") == len(RATIOS)
    assert str(first).startswith("HOLDS: “when the noise ratio increases")


JUMPS = {0.001: 0.001, 0.01: 0.005, 0.1: 0.01, 0.5: 0.01, 0.9: 0.01, 1.0: 0.01}
"""Changes from round to round: smaller only where β ≤ 1/q, for q = 50."""


def by_momentum(jumps=JUMPS, noisy=None):
    """Runs for every noise ratio and β; one of them may jump more, at one noise ratio."""
    return {
        ratio: {
            momentum: [
                trace(0.9, 0.1, 0.05 if (ratio, momentum) == noisy else jump, seed, slow=int(0.01 / momentum))
                for seed in range(SEEDS)
            ]
            for momentum, jump in jumps.items()
        }
        for ratio in RATIOS
    }


def test_the_third_says_which_momenta_are_steadier_and_what_they_cost():
    statement = steadiness.check(by_momentum(), local_steps=50)
    assert statement.holds
    assert "β = 0.001: change 0.00100, 10.0 rounds, accuracy 0.9000; β = 0.01: change 0.00500," in statement.measured
    assert "FCSG: change 0.01000, 0.0 rounds" in statement.measured
    assert "is for β = 0.001, 0.01 (1/q = 0.02)" in statement.measured


@pytest.mark.parametrize("noisy", [(1.0, 0.001), (2.0, 0.01)])
def test_a_momentum_must_be_steadier_under_every_noise(noisy):
    statement = steadiness.check(by_momentum(noisy=noisy), local_steps=50)
    (other,) = {0.001, 0.01} - {noisy[1]}
    assert statement.holds
    assert f"is for β = {other:g} (1/q" in statement.measured


def test_the_third_does_not_hold_if_no_momentum_is_steadier():
    statement = steadiness.check(by_momentum(dict.fromkeys(JUMPS, 0.01)), local_steps=50)
    assert not statement.holds
    assert "is for β = none (1/q" in statement.measured


def test_seeds_must_agree_that_a_momentum_is_steadier():
    """The difference is below 0 with 95 % confidence for one β, but not for all five at once."""
    found = by_momentum(dict.fromkeys(JUMPS, 0.01))
    for runs in found.values():
        runs[0.01] = [trace(0.9, 0.1, jump, seed) for seed, jump in enumerate((0.0065, 0.007, 0.008))]
    differences = [steadiness.change(run) - 0.01 for run in found[1.0][0.01]]
    assert sum(mean_and_interval(differences)) < 0 < sum(mean_and_interval(differences, 0.99))
    assert not steadiness.check(found, local_steps=50).holds


def test_every_momentum_of_the_grid_is_compared_at_the_rate_of_fcsg(finished):
    chosen = {row["noise ratio"]: row for row in read_csv(finished / "table.csv") if row["m"] == "1"}
    assert len(chosen) == len(RATIOS)
    one = steadiness.unit(None, None, 0.005, MOMENTA, [0], 1.5)
    assert one.algorithms == [FCSGM(0.005, momentum) for momentum in (0.001, 0.01, 0.1, 0.5, 0.9, 1.0)]
    assert (finished / "checkpoints" / "steadiness_noise=1.5").is_dir()


def test_the_three_quantities_stand_side_by_side():
    figure = steadiness.picture(by_momentum()).figure
    assert [axes.get_ylabel() for axes in figure.axes] == [
        "change of accuracy from round to round",
        "rounds until within 0.02 of FCSG's end",
        "accuracy at the end",
    ]
    changes, rounds, _ = (axes.containers[0].lines[0].get_ydata() for axes in figure.axes)
    assert list(changes) == pytest.approx([JUMPS[momentum] for momentum in sorted(JUMPS)], rel=1e-6)
    assert list(rounds) == [10, 1, 0, 0, 0, 0]


def test_the_best_setting_is_the_first_of_the_best():
    settings = [FCSG(0.1), FCSG(0.2), FCSG(0.3)]
    traces = [[trace(level, 0.1, 0.0, seed) for seed in range(SEEDS)] for level in (0.5, 0.7, 0.7)]
    assert figure1._best(settings, traces) is settings[1]
    assert figure1._best(settings, None) is settings[0]


def test_a_setting_that_broke_off_is_not_the_best():
    broken = trace(0.99, 0.1, 0.0, 0)
    broken.failure = FedcsoError("non-finite loss")
    assert figure1._best([FCSG(0.1), FCSG(0.2)], [[broken], [trace(0.5, 0.1, 0.0, 0)]]) == FCSG(0.2)


def test_there_are_nine_panels():
    assert {(panel.m, panel.ratio) for panel in PANELS} == {(m, ratio) for m in INNER for ratio in RATIOS}
