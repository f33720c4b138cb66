"""The nested quadratic: its closed forms compared with sampling, and a method that finds its optimum."""

import pytest
import torch

from fedcso.algorithms import FCSG
from fedcso.core.errors import InvalidValue
from fedcso.core.plan import Plan
from fedcso.core.streams import stream
from fedcso.problems import NestedQuadratic
from tests.helpers import Case, assert_close, finite_difference, run_on, standard_error

PROBLEM = NestedQuadratic(dimension=3, coupling=0.5, spread=0.8, noise=1.2)
CENTRES = PROBLEM.centres(3, heterogeneity=0.5)
X = torch.tensor([0.5, -1.0, 2.0], dtype=torch.float64)


def test_exact_value_and_gradient_are_expectations_over_xi():
    """In F, η is replaced by its conditional mean 1 + κξ."""
    c, draws = CENTRES[0], 400_000
    xi = PROBLEM.sample_outer(c, stream(0, 0, 0), (draws,))
    mean_eta = 1 + PROBLEM.coupling * xi
    values = 0.5 * (mean_eta * X - xi).square().sum(1)
    gradients = mean_eta * (mean_eta * X - xi)
    value, gradient = PROBLEM.exact(X, [c], [1.0])
    assert abs(values.mean() - value) < 4 * standard_error(values)
    assert ((gradients.mean(0) - gradient).abs() < 4 * standard_error(gradients)).all()


def test_inner_samples_have_their_conditional_mean_and_spread():
    draws = 100_000
    xi = torch.tensor([[0.3, -2.0, 1.0]], dtype=torch.float64)
    (eta,) = PROBLEM.sample_inner(CENTRES[0], stream(0, 0, 0), xi, draws)
    mean = 1 + PROBLEM.coupling * xi[0]
    assert ((eta.mean(0) - mean).abs() < 4 * standard_error(eta)).all()
    squares = (eta - mean) ** 2
    assert ((squares.mean(0) - PROBLEM.noise**2).abs() < 4 * standard_error(squares)).all()


@pytest.mark.parametrize("weights", [[1.0, 1.0, 1.0], [1.0, 2.0, 5.0]])
def test_exact_gradient_is_that_of_the_exact_value(weights):
    _, gradient = PROBLEM.exact(X, CENTRES, weights)
    assert_close(gradient, finite_difference(lambda x: PROBLEM.exact(x, CENTRES, weights)[0], X), tolerance=1e-8)


def test_clients_count_by_their_weights():
    weights = [1.0, 2.0, 5.0]
    alone = [PROBLEM.exact(X, [c], [1.0]) for c in CENTRES]
    value, gradient = PROBLEM.exact(X, CENTRES, weights)
    assert_close(value, sum(w * v for w, (v, _) in zip(weights, alone, strict=True)) / 8)
    assert_close(gradient, sum(w * g for w, (_, g) in zip(weights, alone, strict=True)) / 8)


@pytest.mark.parametrize("weights", [None, [1.0, 2.0, 5.0]])
def test_the_gradient_vanishes_at_the_optimum(weights):
    optimum = PROBLEM.optimum(CENTRES, weights)
    _, gradient = PROBLEM.exact(optimum, CENTRES, weights or [1.0] * 3)
    assert_close(gradient, torch.zeros(3, dtype=torch.float64))


def test_exact_accepts_leading_axes():
    points = torch.stack([X, 2 * X, -X])
    values, gradients = PROBLEM.exact(points, CENTRES, [1.0] * 3)
    for x, value, gradient in zip(points, values, gradients, strict=True):
        assert_close((value, gradient), PROBLEM.exact(x, CENTRES, [1.0] * 3))


def test_fcsg_comes_near_the_optimum_of_the_biased_objective():
    """E∇F̂ = ∇F + bias vanishes at x_m = Σ E[μξ] / (Σ E[μ²] + τ²/m), which tends to x* as m grows.

    Around x_m the iterate fluctuates on the scale √α; the average over the last rounds does so less.
    """
    m, plan = 2, Plan(rounds=400, local_steps=5, outer_batch=4, inner_batch=2)
    models = []
    run_on(
        "stacked",
        FCSG(0.02),
        Case(PROBLEM, CENTRES),
        plan,
        callbacks=[lambda now: models.append(now.traces[0].last)],
    )
    late = torch.stack(models[100:]).mean(0)
    _, at_zero = PROBLEM.exact(torch.zeros_like(X), CENTRES, [1.0] * 3)
    _, at_one = PROBLEM.exact(torch.ones_like(X), CENTRES, [1.0] * 3)
    biased_optimum = -at_zero / (at_one - at_zero + PROBLEM.noise**2 / m)
    optimum = PROBLEM.optimum(CENTRES)
    assert (late - biased_optimum).norm() < 0.1 * (optimum - biased_optimum).norm()


def test_centres_belong_to_the_data_seed():
    assert_close(PROBLEM.centres(4, seed=1), PROBLEM.centres(4, seed=1), tolerance=0.0)
    assert not torch.equal(PROBLEM.centres(4, seed=1)[0], PROBLEM.centres(4, seed=2)[0])
    assert_close(PROBLEM.centres(2, heterogeneity=0.0), [torch.ones(3, dtype=torch.float64)] * 2)


@pytest.mark.parametrize(("field", "value"), [("dimension", 0), ("spread", 0.0), ("noise", -1.0)])
def test_settings_are_checked(field, value):
    with pytest.raises(InvalidValue, match=f"{field} = {value}"):
        NestedQuadratic(**{field: value})
