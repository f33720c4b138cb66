"""Lists by NDCG: the objective and its bias by enumeration, and the lists that are made of digits."""

import numpy as np
import pytest
import torch
from sklearn.metrics import ndcg_score

from fedcso.core.streams import stream
from fedcso.problems.ndcg import Lists, RankedLists, measure_ndcg, ndcg
from tests.command_line import BAD_INPUT, call
from tests.helpers import assert_close, finite_difference, standard_error
from tests.problems.sampling import assert_bias_of_the_gradient_falls_with_m, sample_gradients

RNG = torch.Generator().manual_seed(0)
DATA = Lists(
    torch.randn(3, 6, 2, generator=RNG, dtype=torch.float64),
    torch.tensor([[1.0, 0, 2, 0, 0, 1], [0, 0, 0, 1, 0, 0], [2, 1, 0, 0, 0, 0]]).double(),
)
PROBLEM = RankedLists(2, 6)
X = torch.tensor([0.4, -0.7], dtype=torch.float64)


def by_hand(x):
    """Return F by loops over lists and relevant items, and the second-order term of the bias at m = 1."""
    values, curvatures = [], []
    for features, relevance in zip(DATA.features, DATA.relevance, strict=True):
        h = features @ x
        gains = 2**relevance - 1
        z = (gains.sort(descending=True).values / torch.log2(torch.arange(2.0, 8).double())).sum()
        value, curved = 0.0, 0.0
        for i in relevance.nonzero().flatten():
            losses = (1 + h - h[i]).relu() ** 2
            value = value - gains[i] / (z * torch.log2(1 + losses.sum()))
            rank = losses.sum().detach().requires_grad_()
            (slope,) = torch.autograd.grad(-gains[i] / (z * torch.log2(1 + rank)), rank, create_graph=True)
            (second,) = torch.autograd.grad(slope, rank)
            others = losses[torch.arange(6) != i]
            curved = curved + second * 25 * others.var(correction=0) / 2
        values.append(value)
        curvatures.append(curved)
    return torch.stack(values).mean(), torch.stack(curvatures).mean()


def test_the_exact_value_is_that_of_loops_over_lists():
    value, gradient = PROBLEM.exact(X, [DATA], [1.0])
    assert_close(value, by_hand(X)[0])
    assert_close(gradient, finite_difference(lambda x: by_hand(x)[0], X), tolerance=1e-8)
    first = Lists(*(part[:1] for part in DATA))
    other, _ = PROBLEM.exact(X, [first], [1.0])
    assert_close(PROBLEM.exact(X, [DATA, first], [1.0, 3.0])[0], (value + 3 * other) / 4)
    values, gradients = PROBLEM.exact(torch.stack([X, 2 * X]), [DATA], [1.0])
    assert_close((values[0], gradients[0]), (value, gradient))


def test_samples_of_a_list_have_its_mean_and_the_bias_falls_with_m():
    _, gradient = PROBLEM.exact(X, [DATA], [1.0])
    leading = float(by_hand(X)[1])
    for m in (20, 60):
        xi = PROBLEM.sample_outer(DATA, stream(0, 0, 0), (15_000,))
        eta = PROBLEM.sample_inner(DATA, stream(0, 0, 1), xi, m)
        g = PROBLEM.inner(X, xi, eta)
        exact_g = mean_of_list(xi)
        point = exact_g.clone().requires_grad_()
        losses = PROBLEM.outer(point, xi)
        (slope,) = torch.autograd.grad(losses.sum(), point)
        relative = slope * (g - exact_g)  # of mean 0: takes most of the noise away
        bias = (PROBLEM.outer(g, xi) - losses.detach() - relative).mean()
        assert float(m * bias) == pytest.approx(leading, rel=0.1)
    sampled = sample_gradients(PROBLEM, DATA, X, 5000, 100)
    assert (sampled.gradients.mean(0) - gradient).norm() < 4 * standard_error(
        sampled.gradients
    ).norm() + 0.05 * gradient.norm()


def test_the_bias_of_the_gradient_falls_with_m():
    xi = PROBLEM.sample_outer(DATA, stream(0, 0, 0), (4,))
    query, place = xi.which // 6, xi.which % 6
    others = torch.stack([DATA.features[q, torch.arange(6) != p] for q, p in zip(query, place, strict=True)])
    # With small scores the losses vary little, and the expansion in 1/m is good for a small m.
    assert_bias_of_the_gradient_falls_with_m(PROBLEM, 0.05 * X, xi, others)


def mean_of_list(xi):
    h = DATA.features @ X
    query, place = xi.which // 6, xi.which % 6
    return (1 + h[query] - h[query, place].unsqueeze(1)).relu().square().mean(1)


def test_relevant_items_are_drawn_evenly_from_lists_and_others_are_not_themselves():
    xi = PROBLEM.sample_outer(DATA, stream(0, 0, 0), (6000,))
    counts = np.bincount(xi.which.numpy(), minlength=18).reshape(3, 6)
    assert (counts[DATA.relevance.numpy() == 0] == 0).all()
    assert np.allclose(counts.sum(1) / 6000, 1 / 3, atol=0.03)
    assert np.allclose(counts[0][[0, 2, 5]] / 6000, 1 / 9, atol=0.02)
    eta = PROBLEM.sample_inner(DATA, stream(0, 0, 1), xi, 3)
    assert not (eta == xi.features.unsqueeze(1)).all(-1).any()


def test_the_metric_has_exponential_gains():
    scores = (DATA.features @ X).numpy()
    expected = ndcg_score((2**DATA.relevance - 1).numpy(), scores, k=10)
    assert measure_ndcg(X, DATA)["ndcg"] == pytest.approx(expected)
    assert expected != pytest.approx(ndcg_score(DATA.relevance.numpy(), scores, k=10))


def test_a_perfect_order_with_wide_gaps_has_ndcg_1():
    relevance = torch.tensor([[1.0, 0, 0]]).double()
    lists = Lists(torch.tensor([[[5.0], [0], [0]]]).double(), relevance)
    value, _ = RankedLists(1, 3).exact(torch.ones(1).double(), [lists], [1.0])
    assert float(value) == pytest.approx(-1.0)


def test_lists_of_digits_have_a_relevant_item_and_not_the_query():
    task = ndcg(clients=4, items=5)
    for lists in task.clients:
        assert lists.features.shape[1:] == (5, 64)
        assert (lists.relevance.sum(1) >= 1).all()
        assert (lists.features.abs().sum(-1) > 0).all()


@pytest.mark.parametrize(
    ("options", "field"),
    [
        (["--items", "1"], "items = 1"),
        (["--items", "100"], "items = 100 must be below 7"),
        (["--margin", "0"], "margin = 0.0"),
    ],
)
def test_a_bad_setting_ends_with_code_2_and_its_name(options, field):
    outcome = call("run", "ndcg", *options)
    assert outcome.code == BAD_INPUT
    assert field in outcome.err
