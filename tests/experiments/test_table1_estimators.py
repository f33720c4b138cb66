"""Table 1 for other estimators: the settings follow the corollaries' powers; statements on numbers made by hand."""

import math
from dataclasses import replace

import pytest

from fedcso.experiments import table1
from fedcso.experiments import table1_estimators as estimators
from fedcso.experiments.complexity import Reached
from fedcso.experiments.table1_estimators import NAMES, Cell
from fedcso.theory.prescribe import THEOREMS

CONFIG = replace(table1.settings(False).estimators, shares={m: [0.4, 0.2, 0.1] for m in estimators.METHODS})


@pytest.fixture(scope="module")
def runs():
    return estimators.scaled(CONFIG, [0, 1])


@pytest.mark.parametrize("method", estimators.METHODS)
def test_settings_follow_the_powers_of_the_corollaries(runs, method):
    first, last = (runs[Cell(method, "extrapolated", share)].unit for share in (0.4, 0.1))
    rate = 1 if method == "Acc-FCSG-M" else 2
    one, other = first.algorithms[0], last.algorithms[0]
    assert one.learning_rate / other.learning_rate == pytest.approx(4**rate)
    if method != "FCSG":
        assert one.momentum / other.momentum == pytest.approx(16)
    assert (first.plan.local_steps, last.plan.local_steps) == (1, 4)
    assert last.plan.initial_batch == CONFIG.outer_batch * (4 if method == "Acc-FCSG-M" else 1)
    assert last.plan.total_steps == pytest.approx(first.plan.total_steps * 4 ** (rate + 2))
    # Steps between evaluations grow like T ε²: the start is as large a part of the mean for every ε.
    assert last.plan.evaluate_every * last.plan.local_steps == 4**rate
    assert last.plan.epsilon == pytest.approx(0.1 * runs[Cell(method, "extrapolated", 0.1)].instance.start)


def test_a_smaller_bias_needs_fewer_samples_in_a_step(runs):
    sizes = {name: [runs[Cell("FCSG", name, share)].unit.plan.inner_batch for share in (0.4, 0.1)] for name in NAMES}
    assert sizes["plain"][1] > sizes["extrapolated"][1] > sizes["three_level"][1]
    growth = {name: math.log(last / first, 4) for name, (first, last) in sizes.items()}
    assert growth["plain"] == pytest.approx(1, abs=0.1)
    assert growth["extrapolated"] == pytest.approx(1 / 2, abs=0.15)


def found(change=lambda cell: 1.0):
    """Return what the theory says, up to a factor."""
    return {
        cell: [
            Reached(scale * change(cell) * cell.share ** -estimators.proven(cell.method, cell.estimator), rounds, 1.0)
            for scale in (1.0, 1.1)
        ]
        for cell in (Cell(m, name, share) for m in estimators.METHODS for name in NAMES for share in (0.4, 0.2, 0.1))
        for rounds in [cell.share ** -THEOREMS[cell.method].exponents[1]]
    }


def test_exponents_and_their_table():
    table = estimators.table(found())
    assert [row["samples, proven"] for row in table if row["method"] == "Acc-FCSG-M"] == ["4", "3.5", "3.33"]
    for row in table:
        assert row["samples ~ ε^−"].mean == pytest.approx(float(row["samples, proven"]), abs=0.01)
        assert row["rounds ~ ε^−"].mean == pytest.approx(float(row["rounds, proven"]))
        assert row["smallest ε / ‖∇F(x₀)‖"] == "0.1"
    assert len(estimators.rows(found(), [0, 1])) == 2 * len(found())


def verdicts(change=lambda cell: 1.0):
    return [statement.holds for statement in estimators.check(found(change))]


def test_all_statements_hold_where_they_are_made_to():
    assert verdicts() == [True, True]


def test_a_single_slope_that_is_too_steep_or_too_flat_is_told():
    for power in (-0.3, 0.3):
        assert verdicts(lambda c, p=power: c.share ** (p * (c[:2] == ("FCSG-M", "three_level"))))[0] is False


def test_extrapolation_that_saves_nothing_is_told():
    assert verdicts(lambda cell: 100.0 if cell.estimator == "extrapolated" else 1.0) == [True, False]


def test_what_was_not_reached_is_told():
    table = estimators.table(found(lambda cell: math.inf if cell.share == 0.1 else 1.0))
    assert all(row["samples to reach it"] == "not reached" for row in table)
