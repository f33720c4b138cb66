"""Sinkhorn robustness: closed forms compared with sampling, the bias of a small m, and numbers that do not overflow."""

import pytest
import torch

from fedcso.algorithms import SOX
from fedcso.core.oracle import Oracle
from fedcso.core.plan import Plan
from fedcso.core.problem import Batch
from fedcso.core.streams import stream
from fedcso.engines import run
from fedcso.estimators.plain import plain
from fedcso.problems.linear_points import Points
from fedcso.problems.sinkhorn_dro import SinkhornClassification, SinkhornRegression, sinkhorn_dro
from tests.command_line import BAD_INPUT, call
from tests.helpers import assert_close, differentiated, finite_difference, standard_error
from tests.problems.sampling import sample_gradients

X = torch.tensor([0.5, -0.3, 0.2], dtype=torch.float64)
POINT = Points(torch.arange(1), torch.tensor([[1.0, 2.0]]).double(), torch.tensor([1.0]).double())
MORE = Points(
    torch.arange(3), torch.tensor([[0.5, 1.0], [2.0, -1.0], [0.0, 0.3]]).double(), torch.tensor([-1.0, 1, 1]).double()
)
KINDS = {"regression": SinkhornRegression(2, 2.0, 0.5), "classification": SinkhornClassification(2, 0.8, 0.5)}


@pytest.mark.parametrize("name", KINDS)
def test_the_exact_value_is_the_integral_over_shifted_inputs(name):
    problem = KINDS[name]
    mean, width = MORE.inputs @ X[:2] + X[2], X[:2].norm() * problem.spread**0.5
    t = torch.linspace(-15, 15, 10_001, dtype=torch.float64)
    losses = problem.loss.value(mean.unsqueeze(1) + width * t, MORE.target.unsqueeze(1))
    density = torch.exp(-t.square() / 2) / (2 * torch.pi) ** 0.5
    expected = problem.temperature * torch.trapezoid(torch.exp(losses / problem.temperature) * density, t).log()
    value, _ = problem.exact(X, [MORE], [1.0])
    assert_close(value, expected.mean(), tolerance=1e-10)


@pytest.mark.parametrize("name", KINDS)
def test_exact_gradient_is_that_of_the_exact_value_and_clients_count_by_their_weights(name):
    problem, clients, weights = KINDS[name], [POINT, MORE], [1.0, 3.0]
    value, gradient = problem.exact(X, clients, weights)
    assert_close(gradient, finite_difference(lambda x: problem.exact(x, clients, weights)[0], X), tolerance=1e-8)
    alone = [problem.exact(X, [client], [1.0])[0] for client in clients]
    assert_close(value, (alone[0] + 3 * alone[1]) / 4)
    values, gradients = problem.exact(torch.stack([X, 2 * X]), clients, weights)
    assert_close((values[0], gradients[0]), (value, gradient))


def test_the_gradient_of_regression_is_the_derivative_of_its_formula():
    """F = λ r² / 2(λ − ‖θ‖²) − (λε/2) log(1 − ‖θ‖²/λ) with r = y − θᵀx − θ₀."""
    problem = KINDS["regression"]
    x, y = POINT.inputs[0], POINT.target[0]
    left, rest = problem.price - X[:2].square().sum(), y - x @ X[:2] - X[2]
    by_weights = -problem.price * rest * x / left + X[:2] * (
        problem.price * rest**2 / left**2 + problem.temperature / left
    )
    _, gradient = problem.exact(X, [POINT], [1.0])
    assert_close(gradient, torch.cat([by_weights, (-problem.price * rest / left).reshape(1)]))


def test_the_bias_falls_with_m_as_the_variance_of_g_says():
    """E F̂ − F = −(λε/2m) Var(g)/(E g)² + O(1/m²), and its derivative is the bias of the gradient."""
    problem = SinkhornRegression(2, 4.0, 0.5)
    double = SinkhornRegression(2, 2.0, 0.5)  # E g² is E g at half the temperature

    def leading(x):
        ratio = (
            double.exact(x, [POINT], [1.0])[0] / double.temperature
            - 2 * problem.exact(x, [POINT], [1.0])[0] / problem.temperature
        )
        return -problem.temperature / 2 * torch.expm1(ratio)

    value, gradient = problem.exact(X, [POINT], [1.0])
    rng, m = stream(0, 0, 0), 8
    xi = problem.sample_outer(POINT, rng, (25_000,))
    eta = problem.sample_inner(POINT, rng, xi, 4 * m)
    for number in (m, 4 * m):
        g = problem.inner(X, xi, eta[:, :number])
        start = problem.outer(torch.ones(1).double(), POINT)
        relative = g / torch.exp((value - start) / problem.temperature) - 1  # of mean 0: takes most of the noise away
        bias = (problem.outer(g, xi) - value - problem.temperature * relative).mean()
        assert float(number * bias) == pytest.approx(float(leading(X)), rel=0.05)

    sampled = sample_gradients(problem, POINT, X, 50_000, m)
    noise = m * standard_error(sampled.gradients).norm()
    slope = finite_difference(leading, X)
    assert 10 * noise < slope.norm()
    assert (m * (sampled.gradients.mean(0) - gradient) - slope).norm() < 4 * noise + 0.1 * slope.norm()


@pytest.mark.parametrize("name", KINDS)
def test_the_formula_is_automatic_differentiation(name):
    problem, rng = KINDS[name], stream(0, 0, 0)
    xi = problem.sample_outer(MORE, rng, (4,))
    batch = Batch(xi, problem.sample_inner(MORE, rng, xi, 5))
    assert_close(
        Oracle(problem, plain).value_and_grad(X, batch), Oracle(problem, differentiated).value_and_grad(X, batch)
    )


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("estimator", [plain, differentiated])
def test_nothing_overflows_at_low_temperature_and_large_losses(name, estimator):
    problem, rng = type(KINDS[name])(2, 1e-3, 0.1), stream(0, 0, 0)
    xi = problem.sample_outer(MORE, rng, (4,))
    batch = Batch(xi, problem.sample_inner(MORE, rng, xi, 5))
    for x in (1000 * X, -1000 * X):
        value, gradient = Oracle(problem, estimator).value_and_grad(x, batch)
        assert torch.isfinite(value)
        assert torch.isfinite(gradient).all()


def test_a_value_tracked_for_each_example_lowers_the_objective():
    task = sinkhorn_dro(clients=2)
    trace = run(SOX(0.1), task, Plan(rounds=2, local_steps=10, outer_batch=8, inner_batch=8))
    assert trace.rows[-1]["loss"] < 0.9 * trace.rows[0]["loss"]


def test_regression_stays_where_the_objective_is_finite():
    problem = KINDS["regression"]
    projected = problem.project(torch.tensor([3.0, 4.0, 7.0]).double())
    assert_close(projected, torch.tensor([0.6 * 1.8**0.5, 0.8 * 1.8**0.5, 7.0], dtype=torch.float64))


def test_clients_can_differ_in_their_targets():
    def spread(alpha):
        return torch.stack([data.target.mean() for data in sinkhorn_dro(clients=6, alpha=alpha).clients]).std()

    assert spread(0.1) > 2 * spread(0.0)


@pytest.mark.parametrize(
    ("options", "field"),
    [
        (["--data", "iris"], "data = 'iris'"),
        (["--price", "0"], "price = 0.0"),
        (["--spread", "-1"], "spread = -1.0"),
        (["--attack", "-1"], "attack = -1.0"),
    ],
)
def test_a_bad_setting_ends_with_code_2_and_its_name(options, field):
    outcome = call("run", "sinkhorn_dro", *options)
    assert outcome.code == BAD_INPUT
    assert field in outcome.err
