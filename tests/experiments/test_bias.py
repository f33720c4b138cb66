"""Estimators for the same samples in miniature; the comparison on numbers made by hand."""

import math
import re

import pytest

from fedcso.core.errors import FedcsoError
from fedcso.core.trace import Trace
from fedcso.experiments import bias, bias_report
from fedcso.experiments.bias_report import Curve, best_of, check
from fedcso.experiments.bias_settings import METHODS, Cell, Contender, settings
from fedcso.problems import PROBLEMS
from tests.command_line import call, read_csv, run
from tests.experiments.miniature import shrink

TINY = {
    "clients": 2,
    "problems": {"instrumental": {}},
    "estimators": [["plain", 4], ["extrapolated", 4], ["rt_mlmc", 8], ["plain", 8]],
    "samples": 60,
    "outer_batch": 2,
    "local_steps": 2,
    "rates": [0.1, 1.0],
    "trial_seeds": [7],
    "seeds": [0, 1],
    "evaluations": 2,
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        shrink(patch, "bias", **TINY)
        return run("reproduce", "bias", out=tmp_path_factory.mktemp("runs"))


def test_it_leaves_figures_tables_and_statements(finished):
    for name in ("bias-estimators", "bias-samples"):
        assert (finished / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    document = (finished / "reproduction.md").read_text()
    assert len(re.findall(r"^- (HOLDS|DOES NOT HOLD): “.+” Measured: ", document, re.MULTILINE)) == 3
    rows = read_csv(finished / "table.csv")
    assert [(row["problem"], row["method"]) for row in rows] == [(p, m) for p in TINY["problems"] for m in METHODS]
    assert {row["auto"] for row in rows} == {"plain, m = 4"}  # runs are too short for a look
    assert "instrumental: plain, because the run is so short" in (finished / "choices.md").read_text()


def test_all_estimators_get_about_the_same_samples(finished):
    totals = {row["algorithm"]: int(row["inner_samples"]) / 2 for row in read_csv(finished / "metrics.csv")}
    assert len(totals) == len(METHODS) * len(TINY["estimators"])
    assert all(50 <= total <= 100 for total in totals.values()), totals


def test_every_combination_has_the_same_trials(finished):
    rows = read_csv(finished / "trials.csv")
    assert len(rows) == len(METHODS) * len(TINY["estimators"]) * 2
    assert {row["learning_rate"] for row in rows} == {"0.1", "1.0"}


def test_it_goes_on_from_outcomes(finished, tmp_path, monkeypatch):
    shrink(monkeypatch, "bias", **TINY)
    outcome = call("reproduce", "bias", "--from", finished, "--out", tmp_path)
    assert outcome.code == 0, outcome.err
    assert outcome.err.count("already done") + outcome.out.count("already done") > 0
    (again,) = tmp_path.glob("*_bias_*")
    assert (again / "table.csv").read_text() == (finished / "table.csv").read_text()


def test_quick_is_smaller_and_has_no_trials():
    quick, whole = settings(True), settings(False)
    assert quick.samples < whole.samples
    assert len(quick.rates) == 1
    assert len(whole.problems) == 5
    assert quick.problems.keys() < whole.problems.keys()
    assert all(PROBLEMS[name](clients=2, **options).problem.exact for name, options in whole.problems.items())


def test_rounds_follow_from_the_samples_of_an_estimator():
    config = settings(False)
    task = PROBLEMS["instrumental"](clients=2)
    per_round = config.local_steps * config.outer_batch
    assert bias.rounds(config, task, Contender("plain", 8)) == config.samples // (8 * per_round)
    assert bias.rounds(config, task, Contender("plain", 64)) == config.samples // (64 * per_round)
    assert bias.rounds(config, task, Contender("rt_mlmc", 64)) > 3 * bias.rounds(config, task, Contender("plain", 8))


# ------------------------------------------------------------------------------------------- by hand

PLAIN, BETTER, MORE = Contender("plain", 8), Contender("extrapolated", 8), Contender("plain", 64)


def trace(*norms, failure=None) -> Trace:
    rows = [{"inner_samples": 20 * n, "gradient_norm": norm} for n, norm in enumerate(norms)]
    return Trace(rows=rows, failure=failure)


def test_a_curve_is_the_mean_over_seeds():
    curve = Curve.of([trace(4.0, 2.0), trace(8.0, 4.0)], clients=2)
    assert curve == Curve([0, 10], [6.0, 3.0], [2.0, 4.0])


def test_a_run_that_breaks_off_or_ends_above_its_start_diverges():
    assert Curve.of([trace(1.0, 2.0), trace(1.0, failure=FedcsoError("lost"))], 1).final == [math.inf, math.inf]


def finals(**by_problem) -> dict[Cell, list[float]]:
    """Return the same errors for every method: of plain, extrapolated, and plain with a large m."""
    return {
        Cell(problem, method, contender): [0.9 * value, 1.0 * value, 1.1 * value]
        for problem, values in by_problem.items()
        for method in METHODS
        for contender, value in zip((PLAIN, BETTER, MORE), values, strict=True)
    }


def test_the_best_has_equals_if_seeds_do_not_tell_them_apart():
    some = finals(instrumental=(3.0, 1.0, 2.0))
    some[Cell("instrumental", "FCSG", MORE)] = [0.5, 2.0, 0.9]
    best, equals = best_of(some, "instrumental", "FCSG")
    assert best.contender == BETTER
    assert [cell.contender for cell in equals] == [MORE]
    assert best_of(some, "instrumental", "FCSG-M")[1] == []


def test_one_that_diverges_is_never_as_good():
    some = finals(instrumental=(math.inf, 1.0, 2.0))
    assert best_of(some, "instrumental", "FCSG") == (Cell("instrumental", "FCSG", BETTER), [])
    table = bias_report.table(some, {"instrumental": BETTER})
    assert table[0]["plain, m = 8"] == "diverges"
    assert table[0]["best"] == "extrapolated, m = 8"
    assert table[0]["auto / best"] == "1.00"


@pytest.mark.parametrize(
    ("second", "chosen", "holds"),
    [
        ((0.5, 1.0, 2.0), (BETTER, PLAIN), [False, True, True]),
        ((3.0, 1.0, 2.0), (BETTER, BETTER), [True, False, True]),
        ((3.0, 1.0, 2.0), (BETTER, PLAIN), [True, False, False]),  # three times the error of the best
        ((0.8, 1.0, 2.0), (BETTER, BETTER), [False, True, False]),  # 1.25 times that of plain
    ],
)
def test_statements_are_told_as_they_are(second, chosen, holds):
    found = check(
        finals(instrumental=(3.0, 1.0, 2.0), information=second),
        dict(zip(("instrumental", "information"), chosen, strict=True)),
    )
    assert [statement.holds for statement in found] == holds
