"""Judges: what they measure, on which data, and by which metric they select."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fedcso.core.errors import FedcsoError, InvalidValue, UnknownName
from fedcso.core.judge import ByClient, Judge
from fedcso.core.metric import Metric

DISTANCE = Metric("distance", higher_is_better=False)
F1 = Metric("f1", higher_is_better=True, share=True)
PREVALENCE = Metric("prevalence", curve=False)


def measure(x, number):
    """Return the distance of x from a number, its half-width, and the root of the number if it is not negative."""
    distance = (x - number).square().sum(-1)
    root = math.sqrt(number) if number >= 0 else math.nan
    return {"distance": distance, "distance_interval": distance / 2, "root": root, "prevalence": 0.5}


JUDGE = Judge(measure, [DISTANCE, DISTANCE.half_width(), PREVALENCE])
X = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
numbers = st.floats(-10, 10)

# --------------------------------------------------------------------------------------- what selects


def test_the_first_metric_with_a_direction_selects_unless_another_is_named():
    assert Judge(measure, [PREVALENCE, DISTANCE, F1]).select == "distance"
    assert Judge(measure, [PREVALENCE, DISTANCE, F1], "f1").select == "f1"


def test_where_nothing_says_which_way_is_better_nothing_selects():
    assert Judge().select is None
    assert Judge(measure).select is None
    assert Judge(measure, [PREVALENCE]).select is None


def test_a_metric_that_is_not_declared_can_not_select_and_the_nearest_is_named():
    with pytest.raises(UnknownName, match=r"unknown metric to select by 'distanc'; did you mean distance\?"):
        Judge(measure, [F1, DISTANCE], select="distanc")


def test_a_judge_that_declares_nothing_is_told_how():
    with pytest.raises(FedcsoError, match=r"^select = 'f1' is not declared: .*fedcso.Metric\('f1', higher_is_better"):
        Judge(measure, select="f1")


def test_a_metric_without_a_direction_can_not_select():
    with pytest.raises(InvalidValue, match=r"select = 'prevalence' .*higher_is_better=True or False"):
        Judge(measure, [F1, PREVALENCE], select="prevalence")


@pytest.mark.parametrize("metrics", ["f1", ["f1"], [F1, "loss"], 3])
def test_only_metrics_can_be_declared(metrics):
    with pytest.raises(InvalidValue, match=r"a list of fedcso\.Metric"):
        Judge(measure, metrics)


def test_a_name_is_declared_once():
    with pytest.raises(InvalidValue, match="different names"):
        Judge(measure, [F1, Metric("f1")])


def test_a_judge_that_does_not_measure_what_it_selects_by_is_refused_when_it_measures():
    with pytest.raises(FedcsoError, match=r"^the judge selects by 'f1', but its evaluate returns distance, "):
        Judge(measure, [F1]).measure(X, 4.0)


# ------------------------------------------------------------------------------- measured by clients


def measured(whole, *clients):
    return JUDGE.measure(X, ByClient(whole, clients))


def test_without_data_nothing_is_measured():
    assert JUDGE.measure(X, None) == {}


@given(whole=numbers, clients=st.lists(numbers, min_size=1, max_size=5))
def test_clients_count_alike_and_those_for_whom_a_metric_is_undefined_are_left_out(whole, clients):
    found = measured(whole, *clients)
    assert float(found["client_distance"]) == pytest.approx(
        sum(((X - c) ** 2).sum().item() for c in clients) / len(clients)
    )
    roots = [math.sqrt(c) for c in clients if c >= 0]
    expected = sum(roots) / len(roots) if roots else math.nan
    assert float(found["client_root"]) == pytest.approx(expected, nan_ok=True)


def test_what_the_whole_measures_stands_beside_it():
    found, alone = measured(4.0, 0.0, 1.0), JUDGE.measure(X, 4.0)
    assert {name: found[name] for name in alone} == alone
    assert alone["distance"] != found["client_distance"]


def test_neither_half_widths_nor_what_has_no_curve_is_averaged_over_clients():
    assert list(measured(4.0, 0.0, 1.0)) == [
        *("distance", "distance_interval", "root", "prevalence"),
        *("client_distance", "client_root"),
    ]
    at_clients = JUDGE.measure_at_clients(X, ByClient(4.0, [0.0, 1.0]))
    assert [list(metrics) for metrics in at_clients] == [["distance", "root", "prevalence"]] * 2


def test_a_client_without_data_of_its_own_is_left_out():
    assert measured(4.0, None, 1.0)["client_distance"] == 5  # (0, 1, 2) from 1
    assert list(measured(4.0, None)) == list(JUDGE.measure(X, 4.0))


def test_clients_do_not_remember_how_they_measured():
    """Keeping an autograd graph for every evaluation would exhaust the memory."""
    (metrics,) = JUDGE.measure_at_clients(X.clone().requires_grad_(), ByClient(4.0, [0.0]))
    assert not metrics["distance"].requires_grad
