"""How scores are judged: average precision and AUROC against definitions written out, and networks of one output."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from fedcso.core.errors import FedcsoError
from fedcso.core.streams import stream
from fedcso.problems.scores import Scores, ranking_judge, to_network_input
from tests.helpers import assert_close
from tests.rare import ITSELF, as_model, identity, labelled, linear, scored

JUDGE = ranking_judge(identity())

# ------------------------------------------------------------------------------------------ by hand


def average_precision(scores: list[float], labels: list[int]) -> float:
    """Return Σ_n (R_n − R_{n−1}) P_n over thresholds from high to low, ties together."""
    total, recall_before = 0.0, 0.0
    for threshold in sorted(set(scores), reverse=True):
        called = [label for score, label in zip(scores, labels, strict=True) if score >= threshold]
        precision, recall = sum(called) / len(called), sum(called) / sum(labels)
        total += (recall - recall_before) * precision
        recall_before = recall
    return total


def auroc(scores: list[float], labels: list[int]) -> float:
    """Return the share of pairs in the right order; ties count half."""
    ranked = list(zip(scores, labels, strict=True))
    pairs = [(s > t) + 0.5 * (s == t) for s, label in ranked for t, other in ranked if (label, other) == (1, 0)]
    return sum(pairs) / len(pairs)


def measure(scores: list[float], labels: list[int]) -> dict:
    return {name: float(value) for name, value in JUDGE.measure(ITSELF, scored(scores, labels)).items()}


def test_average_precision_is_the_sum_over_steps_and_not_the_trapezoid():
    """The positives are at ranks 1 and 4 of 4: ½·1 + ½·(2/4). The trapezoid would have ½·(1 + 1)/2 + ½·(⅓ + ½)/2."""
    metrics = measure([0.9, 0.8, 0.7, 0.1], [1, 0, 0, 1])
    assert metrics["average_precision"] == pytest.approx(0.75, rel=1e-12)
    assert metrics["auroc"] == pytest.approx(0.5, rel=1e-12)
    assert metrics["prevalence"] == 0.5


some = st.lists(st.tuples(st.integers(-3, 3), st.integers(0, 1)), min_size=2, max_size=12)


@given(some.filter(lambda pairs: 0 < sum(label for _, label in pairs) < len(pairs)))
def test_metrics_are_those_by_hand_also_with_ties(pairs):
    scores, labels = [float(score) for score, _ in pairs], [label for _, label in pairs]
    metrics = measure(scores, labels)
    assert metrics["average_precision"] == pytest.approx(average_precision(scores, labels), rel=1e-12)
    assert metrics["auroc"] == pytest.approx(auroc(scores, labels), rel=1e-12)
    assert metrics["prevalence"] == sum(labels) / len(labels)


def test_scores_that_are_all_alike_are_worth_chance():
    metrics = measure([1.0] * 10, [1] + [0] * 9)
    assert (metrics["average_precision"], metrics["auroc"]) == (pytest.approx(0.1), pytest.approx(0.5))


# ----------------------------------------------------------------------------------- where undefined


def test_without_positives_nothing_is_defined_and_nothing_is_zero():
    metrics = measure([1.0, 2.0], [0, 0])
    assert math.isnan(metrics["average_precision"])
    assert math.isnan(metrics["auroc"])
    assert metrics["prevalence"] == 0.0


def test_without_negatives_there_is_no_auroc():
    metrics = measure([1.0, 2.0], [1, 1])
    assert metrics["average_precision"] == 1.0
    assert math.isnan(metrics["auroc"])


def test_without_examples_nothing_is_defined():
    metrics = measure([], [])
    assert metrics
    assert all(map(math.isnan, metrics.values()))


def test_without_test_data_there_are_no_metrics():
    assert JUDGE.measure(ITSELF, None) == {}


@pytest.mark.parametrize("weight", [math.nan, math.inf, 1e300], ids=["nan", "infinite", "beyond all bounds"])
def test_scores_that_are_no_numbers_are_judged_without_an_error(weight):
    """The weights can be finite while the scores overflow; training reports the cause."""
    x = {"weight": torch.full((1, 1), weight, dtype=torch.float64)}
    metrics = JUDGE.measure(x, scored([1e10, 2e10, -1e10, 0.0], [1, 0, 0, 1]))
    precision = float(metrics["average_precision"])
    assert math.isnan(precision) or 0 <= precision <= 1


def test_saturated_is_the_share_of_logits_beyond_all_slope():
    assert measure([-16.0, 15.0, 15.1, 0.0], [0, 1, 0, 1])["saturated"] == 0.5
    assert measure([-14.0, 14.0], [0, 1])["saturated"] == 0.0


# ----------------------------------------------------------------------------------------- networks


class Returns(nn.Module):
    """A network whose output has a given shape."""

    def __init__(self, *shape: int):
        super().__init__()
        self.weight, self.shape = nn.Parameter(torch.zeros(())), shape

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.weight + torch.zeros(self.shape)


@pytest.mark.parametrize(("shape", "said"), [((5, 2), "5×2"), ((5, 1, 1), "5×1×1"), ((1, 5), "1×5"), ((10,), "10")])
def test_a_network_with_another_output_than_one_score_is_refused_by_its_shape(shape, said):
    scores = Scores(Returns(*shape))
    with pytest.raises(FedcsoError, match=f"ONE number for each of 5 examples, not {said}$"):
        scores.logits(scores.network.init(stream(0, 0, 0)), torch.zeros(5, 3))


@pytest.mark.parametrize("shape", [(5,), (5, 1)])
def test_one_score_each_may_have_an_axis_of_its_own(shape):
    scores = Scores(Returns(*shape))
    assert scores.logits(scores.network.init(stream(0, 0, 0)), torch.zeros(5, 3)).shape == (5,)


def test_many_examples_are_scored_in_portions_as_they_would_be_at_once():
    many, x = labelled(2345, 100), as_model(torch.tensor([0.6, -0.4, 0.9, 0.2], dtype=torch.float64))
    scores, labels = ranking_judge(Scores(linear)).rank(x, many)
    assert_close(scores, many.inputs @ x["weight"][0] + x["bias"])
    assert torch.equal(labels, many.labels)
    assert not scores.requires_grad


def test_pictures_are_numbers_between_minus_one_and_one():
    assert to_network_input(torch.tensor([0, 255], dtype=torch.uint8)).tolist() == [-1.0, 1.0]
    inputs = torch.tensor([-3.0, 300.0])
    assert to_network_input(inputs) is inputs


class Shifted(nn.Module):
    """A network with a buffer, which is not a parameter."""

    def __init__(self):
        super().__init__()
        self.layer = linear()
        self.register_buffer("shift", torch.ones(1, dtype=torch.float64))

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.layer(inputs) + self.shift


@pytest.mark.parametrize("network", [linear, Shifted])
def test_the_exported_network_has_the_trained_parameters(network):
    model, data = network(), labelled(6, 2)
    scores = Scores(model)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    x = scores.network.init(stream(3, 0, 0))
    exported = ranking_judge(scores).network(x, data)
    assert_close(exported.module(data.inputs).squeeze(1).detach(), scores.logits(x, data.inputs))
    assert torch.equal(exported.inputs, data.inputs[:2])
    assert_close(dict(model.state_dict()), before, tolerance=0.0)  # the user's module is unchanged
