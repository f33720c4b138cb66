"""Mean predictions over transformations: enumeration, Jensen's inequality, and samples without replacement."""

from itertools import product

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from fedcso.core.errors import InvalidValue
from fedcso.core.oracle import Oracle
from fedcso.core.problem import Batch
from fedcso.core.streams import stream
from fedcso.core.tree import average
from fedcso.datasets import Examples
from fedcso.estimators.plain import plain
from fedcso.problems.invariant_images import InvariantImages, invariant_images, transformations
from tests.command_line import BAD_INPUT, call
from tests.helpers import assert_close, gap
from tests.problems.sampling import assert_bias_of_the_gradient_falls_with_m


def network():
    return nn.Sequential(nn.Linear(9, 5), nn.Tanh(), nn.Linear(5, 3)).double()


PROBLEM = InvariantImages(network, transformations("rotations", 3))
DISTINCT = InvariantImages(network, transformations("rotations", 3), distinct=True)
DATA = Examples(
    torch.rand(4, 9, generator=torch.Generator().manual_seed(0), dtype=torch.float64), torch.tensor([0, 1, 2, 1])
)
X = PROBLEM.init(stream(0, 0, 0))


def logits(x):
    return PROBLEM.network.apply(x, PROBLEM.transformed(DATA.inputs).flatten(0, 1)).unflatten(0, (4, 4))


def expected_loss(x, m):
    """Return F_m: the mean over all tuples of m transformations of the cross-entropy of their mean logits."""
    every = logits(x)
    tuples = torch.tensor(list(product(range(4), repeat=m)))
    means = every[:, tuples].mean(2)
    return F.cross_entropy(means.flatten(0, 1), DATA.labels.repeat_interleave(len(tuples)))


def test_rotations_and_shifts_are_what_they_are_called():
    picture = torch.arange(1.0, 10).reshape(1, 9)
    padded = torch.cat([picture, torch.zeros(1, 1)], 1)
    turned = padded[0, transformations("rotations", 3)]
    assert [row.reshape(3, 3).tolist() for row in turned] == [
        torch.rot90(picture.reshape(3, 3), k).tolist() for k in range(4)
    ]
    moved = padded[0, transformations("shifts", 3)].reshape(9, 3, 3)
    assert moved[4].flatten().tolist() == picture[0].tolist()
    assert moved[0].tolist() == [[0, 0, 0], [0, 1, 2], [0, 4, 5]]
    assert len(transformations("both", 3)) == 36


def test_exact_value_and_gradient_are_those_of_the_mean_over_all_transformations():
    value, gradient = PROBLEM.exact(X, [DATA], [1.0])
    assert_close(value, F.cross_entropy(logits(X).mean(1), DATA.labels).detach())
    point = {name: leaf.clone().requires_grad_() for name, leaf in X.items()}
    loss = F.cross_entropy(logits(point).mean(1), DATA.labels)
    assert_close(gradient, dict(zip(point, torch.autograd.grad(loss, point.values()), strict=True)))


def test_clients_count_by_their_weights():
    parts = [Examples(DATA.inputs[:1], DATA.labels[:1]), Examples(DATA.inputs[1:], DATA.labels[1:])]
    alone = [PROBLEM.exact(X, [part], [1.0]) for part in parts]
    value, gradient = PROBLEM.exact(X, parts, [1.0, 3.0])
    assert_close([value, gradient], average([list(one) for one in alone], [1.0, 3.0]))


def test_by_jensen_the_expected_loss_falls_with_m_towards_the_objective():
    exact = float(PROBLEM.exact(X, [DATA], [1.0])[0])
    losses = [float(expected_loss(X, m)) for m in (1, 2, 3, 4)]
    assert losses[0] > losses[1] > losses[2] > losses[3] > exact + 1e-6


def test_the_bias_is_half_the_trace_of_curvature_times_covariance_over_m():
    every = logits(X).detach()
    mean = every.mean(1)
    p = mean.softmax(-1)
    curvature = torch.diag_embed(p) - p.unsqueeze(2) * p.unsqueeze(1)
    spread = every - mean.unsqueeze(1)
    covariance = torch.einsum("npi,npj->nij", spread, spread) / 4
    leading = 0.5 * (curvature * covariance).sum((1, 2)).mean()
    exact = PROBLEM.exact(X, [DATA], [1.0])[0]
    for m in (2, 4):
        assert float(m * (expected_loss(X, m) - exact)) == pytest.approx(float(leading), rel=0.1)


def test_the_bias_of_the_gradient_falls_with_m():
    assert_bias_of_the_gradient_falls_with_m(PROBLEM, X, DATA, PROBLEM.transformed(DATA.inputs))


@pytest.mark.parametrize(("problem", "exact"), [(DISTINCT, True), (PROBLEM, False)])
def test_all_transformations_without_replacement_are_exact_and_with_replacement_are_not(problem, exact):
    eta = problem.sample_inner(DATA, stream(1, 0, 0), DATA, 4)
    value, gradient = Oracle(problem, plain).value_and_grad(X, Batch(DATA, eta))
    expected = problem.exact(X, [DATA], [1.0])
    assert (gap((value, gradient), expected) < 1e-12) is exact


def test_samples_are_transformed_pictures_of_their_xi():
    xi = PROBLEM.sample_outer(DATA, stream(0, 0, 0), (2, 3))
    eta = PROBLEM.sample_inner(DATA, stream(0, 0, 1), xi, 5)
    assert eta.shape == (2, 3, 5, 9)
    assert_close(eta.sort(-1).values, xi.inputs.unsqueeze(-2).expand_as(eta).sort(-1).values)


def test_there_are_no_more_different_transformations_than_there_are():
    with pytest.raises(InvalidValue, match="inner_batch = 5 must be at most 4"):
        DISTINCT.sample_inner(DATA, stream(0, 0, 0), DATA, 5)


def test_the_judge_averages_predictions():
    task = invariant_images(clients=2, hidden=4)
    measured = task.judge.measure(task.problem.init(stream(0, 0, 0)), task.test)
    pictures = task.problem.transformed(task.test.inputs)
    x = task.problem.init(stream(0, 0, 0))
    by_hand = torch.stack([task.problem.network.apply(x, pictures[:, k]) for k in range(4)]).mean(0)
    assert float(measured["accuracy"]) == pytest.approx(float((by_hand.argmax(1) == task.test.labels).double().mean()))


@pytest.mark.parametrize(
    ("options", "field"),
    [
        (["--transform", "mirrors"], "transform = 'mirrors'"),
        (["--hidden", "-1"], "hidden = -1"),
        (["--distinct", "true", "--inner-batch", "5", "--rounds", "1", "--clients", "2"], "inner_batch = 5"),
    ],
)
def test_a_bad_setting_ends_with_code_2_and_its_name(options, field, tmp_path):
    outcome = call("run", "invariant_images", *options, "--out", tmp_path)
    assert outcome.code == BAD_INPUT
    assert field in outcome.err
