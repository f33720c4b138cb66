"""Numbers to report."""

import math
from dataclasses import dataclass

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fedcso.core.metrics import ByClient, at_clients, evaluate, is_better, mean_and_interval, norm
from fedcso.core.streams import stream
from fedcso.problems import NestedQuadratic
from tests.helpers import CASES

every_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


@pytest.mark.parametrize("metric", ["accuracy", "average_precision", "auroc"])
def test_scores_are_better_when_higher(metric):
    assert is_better(metric, 0.9, [0.8, 0.7])
    assert not is_better(metric, 0.75, [0.8, 0.7])


@pytest.mark.parametrize("metric", ["loss", "train_loss", "gradient_norm"])
def test_losses_are_better_when_lower(metric):
    assert is_better(metric, 0.6, [0.8, 0.7])
    assert not is_better(metric, 0.75, [0.8, 0.7])


def test_an_equal_value_is_not_better():
    assert not is_better("loss", 0.7, [0.7])


def test_the_first_value_is_the_best_so_far():
    assert is_better("loss", 3.0, [])
    assert is_better("loss", 3.0, [math.nan])


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_value_that_is_not_finite_is_never_better(value):
    assert not is_better("loss", value, [1.0])
    assert not is_better("accuracy", value, [])


@every_case
def test_models_evaluated_together_are_evaluated_each(case):
    models = [case.problem.init(stream(seed, 0, 0)) for seed in range(3)]
    weights = [1.0, 2.0, 3.0, 4.0]
    together = evaluate(case.problem, models, case.test, case.clients, weights)
    alone = [evaluate(case.problem, [x], case.test, case.clients, weights)[0] for x in models]
    for one, other in zip(together, alone, strict=True):
        assert one == pytest.approx(other, rel=1e-12)
    assert together[0] != together[1]


# ------------------------------------------------------------------------------- measured by clients


@dataclass(frozen=True)
class Measured(NestedQuadratic):
    """Judged by a number: how far x lies from it, and, if it is not negative, its root."""

    def exact(self, x, clients, weights):
        return None

    def evaluate(self, x, test):
        if test is None:
            return {}
        distance = (x - test).square().sum(-1)
        return {"loss": distance, "loss_interval": distance / 2, "root": math.sqrt(test) if test >= 0 else math.nan}


def measured(models, whole, *clients):
    return evaluate(Measured(), models, ByClient(whole, clients), [], [])


X = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
numbers = st.floats(-10, 10)


@given(whole=numbers, clients=st.lists(numbers, min_size=1, max_size=5))
def test_clients_count_alike_and_those_for_whom_a_metric_is_undefined_are_left_out(whole, clients):
    (row,) = measured([X], whole, *clients)
    assert row["client_loss"] == pytest.approx(sum(((X - c) ** 2).sum().item() for c in clients) / len(clients))
    roots = [math.sqrt(c) for c in clients if c >= 0]
    expected = sum(roots) / len(roots) if roots else math.nan
    assert row["client_root"] == pytest.approx(expected, nan_ok=True)


def test_what_the_whole_measures_stands_beside_it():
    (row,) = measured([X], 4.0, 0.0, 1.0)
    alone = evaluate(Measured(), [X], 4.0, [], [])[0]
    assert {name: row[name] for name in alone} == alone
    assert alone["loss"] != row["client_loss"]


def test_intervals_are_not_averaged_over_clients():
    (row,) = measured([X], 4.0, 0.0, 1.0)
    assert list(row) == ["loss", "loss_interval", "root", "client_loss", "client_root"]
    assert [list(metrics) for metrics in at_clients(Measured(), X, ByClient(4.0, [0.0, 1.0]))] == [["loss", "root"]] * 2


def test_a_client_without_data_of_its_own_is_left_out():
    (row,) = measured([X], 4.0, None, 1.0)
    assert row["client_loss"] == 5  # (0, 1, 2) from 1
    (row,) = measured([X], 4.0, None)
    assert list(row) == ["loss", "loss_interval", "root"]


def test_clients_measure_models_evaluated_together_as_each():
    models = [X, 2 * X, X - 5]
    together = measured(models, 4.0, 0.0, -1.0, 2.0)
    assert together == [measured([x], 4.0, 0.0, -1.0, 2.0)[0] for x in models]
    assert len({row["client_loss"] for row in together}) == 3


def test_clients_do_not_remember_how_they_measured():
    """A graph kept for every evaluation would fill the memory."""
    (metrics,) = at_clients(Measured(), X.clone().requires_grad_(), ByClient(4.0, [0.0]))
    assert not metrics["loss"].requires_grad


def test_norm_is_that_of_all_leaves_together():
    tree = {"a": torch.tensor([3.0]), "b": (torch.tensor([[4.0, 12.0]]), torch.tensor(84.0))}
    assert norm(tree) == 85  # 3² + 4² + 12² + 84² = 85²


def test_norm_keeps_leading_axes():
    stacked = torch.tensor([[3.0, 4.0], [6.0, 8.0]])
    assert norm({"x": stacked}, lead=1).tolist() == [5, 10]


def test_interval_of_two_seeds_is_that_of_student():
    """0 and 2: mean 1, standard error 1, and with one degree of freedom t is Cauchy's quantile."""
    mean, half_width = mean_and_interval([0.0, 2.0], level=0.95)
    assert mean == 1
    assert half_width == pytest.approx(math.tan(math.pi * 0.475))


def test_a_higher_level_needs_a_wider_interval():
    values = [1.0, 2.0, 4.0]
    assert mean_and_interval(values, 0.99)[1] > mean_and_interval(values, 0.9)[1] > 0


def test_one_seed_has_no_interval():
    mean, half_width = mean_and_interval([3.0])
    assert mean == 3
    assert math.isnan(half_width)
