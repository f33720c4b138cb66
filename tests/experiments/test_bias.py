"""Estimators and an adaptive m in miniature; the comparison on numbers made by hand."""

import math
import re

import pytest

from fedcso.core.trace import Trace
from fedcso.experiments import bias
from fedcso.experiments.bias import ADAPTIVE, Error, Sized
from tests.command_line import read_csv, run
from tests.experiments.miniature import shrink

TINY = {
    "clients": 2,
    "seeds": [0, 1],
    "estimators": [["plain", 2], ["plain", 4], ["extrapolated", 2], ["v_mlmc", 4], ["rt_mlmc", 4]],
    "samples": 100,
    "outer_batch": 2,
    "local_steps": 5,
    "noises": [2.0],
    "fixed": [1, 4],
    "rounds": 4,
    "figure1_steps": 5,
    "targets": [10.0, 1e-9],
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        shrink(patch, "bias", **TINY)
        return run("reproduce", "bias", out=tmp_path_factory.mktemp("runs"))


def test_it_leaves_figures_tables_and_statements(finished):
    for name in ("bias-estimators", "bias-adaptive"):
        assert (finished / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    document = (finished / "reproduction.md").read_text()
    assert len(re.findall(r"^- (HOLDS|DOES NOT HOLD): “.+” Measured: ", document, re.MULTILINE)) == 2
    assert [row["best fixed m"] for row in read_csv(finished / "table.csv")] == ["1", "none"]


def test_all_estimators_get_about_the_same_samples(finished):
    totals = {}
    for row in read_csv(finished / "metrics.csv"):
        if not row["algorithm"].startswith("noise"):
            totals[row["algorithm"]] = int(row["inner_samples"]) / 2
    assert len(totals) == 2 * len(TINY["estimators"])
    assert all(90 <= total <= 200 for total in totals.values()), totals


def test_the_adaptive_run_pays_for_its_diagnoses(finished):
    rows = [row for row in read_csv(finished / "metrics.csv") if row["algorithm"] == "noise 2 adaptive"]
    start = [int(row["inner_samples"]) for row in rows if row["round"] == "0"]
    assert all(count > 0 for count in start)
    assert {row["inner_batch"] for row in rows} - {""}


def test_quick_is_smaller():
    quick, whole = bias.settings(True), bias.settings(False)
    assert quick.samples < whole.samples
    assert quick.rounds < whole.rounds
    assert set(whole.noises) == {1.5, 2.0}  # the noisy ones of Figure 1


def test_the_error_is_the_mean_over_seeds():
    traces = [
        Trace(rows=[{"inner_samples": 20 * r * k, "gradient_norm": k / (r + 1)} for r in range(3)]) for k in (1, 3)
    ]
    assert bias.error(traces, clients=2) == Error([0, 20, 40], pytest.approx([2, 1, 2 / 3]))


def test_the_first_time_below_a_target_counts():
    one = Error([0, 10, 20, 30], [1.0, 0.5, 0.6, 0.4])
    assert one.first_below(0.5) == 10
    assert one.first_below(0.45) == 30
    assert one.first_below(0.1) == math.inf
    assert one.after(29) == 0.6


def made(own):
    """The best fixed m takes 20 samples to 0.5 and 40 to 0.2."""
    return {
        Sized(2.0, 1): Error([0, 20, 30], [1.0, 0.5, 0.4]),
        Sized(2.0, 8): Error([0, 30, 40], [1.0, 0.5, 0.2]),
        Sized(2.0, ADAPTIVE): Error([0, *own], [1.0, 0.5, 0.2]),
    }


def test_the_adaptive_one_is_held_against_the_best_of_the_fixed_ones():
    table = bias.comparison(made([15, 30]), [0.5, 0.2])
    assert [row["best fixed m"] for row in table] == ["1", "8"]
    assert [row["its samples"] for row in table] == ["20", "40"]
    assert [row["adaptive / best"] for row in table] == ["0.75", "0.75"]
    assert table[1]["samples, m = 1"] == "never"
    assert bias.check_adaptive(table).holds


@pytest.mark.parametrize("own", [[15, 41], [21, 30], [20, 40]])
def test_it_is_told_if_the_adaptive_one_does_not_win_everywhere(own):
    statement = bias.check_adaptive(bias.comparison(made(own), [0.5, 0.2]))
    assert not statement.holds


def test_who_never_gets_there_has_not_won():
    table = bias.comparison(made([15, 30]), [0.5, 0.1])
    assert table[1]["adaptive / best"] == "–"
    assert not bias.check_adaptive(table).holds
