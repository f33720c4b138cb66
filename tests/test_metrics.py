"""Numbers to report."""

import math

import pytest
import torch

from fedcso.metrics import evaluate, is_better, mean_and_interval, norm
from fedcso.streams import stream
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
