"""Partial AUC: all pairs by hand, the bias of a small m, and the metrics."""

from functools import partial

import pytest
import torch
from sklearn.metrics import roc_auc_score
from torch import nn

from fedcso.core.streams import stream
from fedcso.datasets.examples import Examples
from fedcso.problems.auprc import Positives
from fedcso.problems.partial_auc import OneWayCVaR, OneWayKL, TwoWayKL, partial_auc
from fedcso.problems.partial_ranking import one_way_auc, two_way_auc
from fedcso.problems.scores import Scores
from tests.command_line import BAD_INPUT, call
from tests.helpers import assert_close
from tests.problems.sampling import assert_bias_of_the_gradient_falls_with_m

RNG = torch.Generator().manual_seed(0)
LABELS = torch.tensor([1, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0])
DATA = Examples(torch.randn(11, 2, generator=RNG, dtype=torch.float64) + LABELS.unsqueeze(1), LABELS)
SCORES = Scores(partial(nn.Linear, 2, 1, dtype=torch.float64))
W = {"weight": torch.tensor([[0.3, -0.2]], dtype=torch.float64), "bias": torch.tensor([0.1], dtype=torch.float64)}
KL, TWO_WAY, CVAR = OneWayKL(SCORES, 1.0, 0.8), TwoWayKL(SCORES, 1.0, 0.8, True, 0.5), OneWayCVaR(SCORES, max_fpr=0.25)


def pairs(w=W):
    h = DATA.inputs @ w["weight"][0] + w["bias"]
    return (1 - h[LABELS == 1].unsqueeze(1) + h[LABELS == 0]).relu().square()


def test_kl_objectives_are_log_means_over_negatives():
    means = torch.exp(pairs() / 0.8).mean(1)
    assert_close(KL.exact(W, [DATA], [1.0])[0], 0.8 * means.log().mean())
    assert_close(TWO_WAY.exact(W, [DATA], [1.0])[0], (means ** (0.8 / 0.5)).mean())


def test_cvar_at_the_best_threshold_is_the_mean_of_the_highest_negatives():
    """A quarter of eight negatives: the two with the highest scores, whatever the positive."""
    h = (DATA.inputs @ W["weight"][0] + W["bias"])[LABELS == 0].sort().values
    expected = pairs().topk(2, 1).values.mean()
    at = [
        float(CVAR.exact({"w": W, "t": h[-2] - gap}, [DATA], [1.0])[0]) for gap in (0.0, -0.05, (h[-2] - h[-3]) + 0.05)
    ]
    assert at[0] == pytest.approx(float(expected))
    assert at[0] < min(at[1:])


@pytest.mark.parametrize("problem", [KL, TWO_WAY, CVAR])
def test_exact_gradients_are_derivatives_and_clients_count_by_their_weights(problem):
    x = {"w": W, "t": torch.tensor(0.2, dtype=torch.float64)} if problem is CVAR else W
    value, gradient = problem.exact(x, [DATA], [1.0])

    def moved(step):
        w = W | {"weight": W["weight"] + step * torch.tensor([[1.0, 2.0]], dtype=torch.float64)}
        return problem.exact({"w": w, "t": x["t"]} if problem is CVAR else w, [DATA], [1.0])[0]

    slope = problem.network_weights(gradient)["weight"] @ torch.tensor([1.0, 2.0], dtype=torch.float64)
    assert float(slope) == pytest.approx(float((moved(1e-6) - moved(-1e-6)) / 2e-6), rel=1e-6)
    all_positive = Examples(DATA.inputs[LABELS == 1], LABELS[LABELS == 1])  # takes no part
    half = Examples(DATA.inputs[:5], LABELS[:5])
    other, _ = problem.exact(x, [half], [1.0])
    assert_close(problem.exact(x, [DATA, half, all_positive], [1.0, 3.0, 9.0])[0], (value + 3 * other) / 4)


def test_the_bias_falls_with_m_as_the_variance_of_g_says_and_cvar_has_none():
    """E F̂ − F = −(λ/2m) E⁺[ Var(g)/(E g)² ] + O(1/m²)."""
    g = torch.exp(pairs() / 0.8)
    leading = -0.8 / 2 * (g.var(1, correction=0) / g.mean(1).square()).mean()
    positives, m, draws = DATA.inputs[LABELS == 1], 16, 20_000
    xi = KL.sample_outer(DATA, stream(0, 0, 0), (draws, 3))._replace(inputs=positives.expand(draws, -1, -1))
    eta = KL.sample_inner(DATA, stream(1, 0, 0), xi, m)
    assert eta.shape == (draws, 1, m, 2)
    high, low = (part @ W["weight"][0] + W["bias"] for part in (positives, eta.squeeze(1)))
    losses = KL.pair_losses(high.unsqueeze(1), low.unsqueeze(1))
    found = torch.exp(losses / 0.8).mean(2)
    relative = found / g.mean(1) - 1  # of mean 0: takes most of the noise away
    bias = (KL.outer(found, xi) - 0.8 * g.mean(1).log() - 0.8 * relative).mean()
    assert float(m * bias) == pytest.approx(float(leading), rel=0.15)

    x = {"w": W, "t": torch.tensor(0.2, dtype=torch.float64)}
    each = torch.stack([CVAR.mean_over_negatives(x, high.unsqueeze(1), one.unsqueeze(0)).mean() for one in low[:4000]])
    assert abs(each.mean() - CVAR.exact(x, [DATA], [1.0])[0]) < 4 * each.std() / 4000**0.5


@pytest.mark.parametrize("problem", [KL, TWO_WAY])
def test_the_bias_of_the_gradient_falls_with_m(problem):
    xi = Positives(torch.arange(3), DATA.inputs[LABELS == 1])
    eta = DATA.inputs[LABELS == 0][:6].expand(3, -1, -1)
    assert_bias_of_the_gradient_falls_with_m(problem, W, xi, eta)


def test_inner_samples_are_negatives():
    xi = KL.sample_outer(DATA, stream(0, 0, 0), (2, 3))
    rows = KL.sample_inner(DATA, stream(0, 0, 1), xi, 50).flatten(0, 2)
    negatives = DATA.inputs[LABELS == 0]
    assert (torch.cdist(rows, negatives).min(1).values < 1e-6).all()
    assert not KL.trains(Examples(DATA.inputs[LABELS == 1], LABELS[LABELS == 1]))


def test_one_way_auc_is_that_of_scikit_learn_and_two_way_that_of_the_hard_pairs():
    scores = torch.randn(200, generator=RNG)
    labels = (torch.rand(200, generator=RNG) < 0.3).long()
    assert one_way_auc(scores, labels, 0.2) == pytest.approx(roc_auc_score(labels, scores, max_fpr=0.2))
    assert two_way_auc(scores, labels, 1.0) == pytest.approx(roc_auc_score(labels, scores))
    assert two_way_auc(torch.tensor([4.0, 1, 3, 2, 0]), torch.tensor([1, 1, 0, 0, 0]), 0.5) == 0.0
    assert one_way_auc(scores, torch.ones(200), 0.2) != one_way_auc(scores, torch.ones(200), 0.2)  # nan


def test_too_many_pairs_are_not_enumerated(monkeypatch):
    assert partial_auc(clients=2).problem.exact is not None
    monkeypatch.setattr("fedcso.problems.partial_auc.MOST_PAIRS", 1000)
    assert partial_auc(clients=2).problem.exact is None


@pytest.mark.parametrize(
    ("options", "field"),
    [
        (["--objective", "auc"], "objective = 'auc'"),
        (["--temperature", "0"], "temperature = 0.0"),
        (["--objective", "two_way_kl", "--positive-temperature", "0"], "positive_temperature = 0.0"),
        (["--max-fpr", "2"], "max_fpr = 2.0"),
        (["--margin", "-1"], "margin = -1.0"),
    ],
)
def test_a_bad_setting_ends_with_code_2_and_its_name(options, field):
    outcome = call("run", "partial_auc", *options)
    assert outcome.code == BAD_INPUT
    assert field in outcome.err
