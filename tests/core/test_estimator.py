"""The biased estimator of equation (4): its value and gradient, its bias as a function of m, and the oracle."""

import math
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
import pytest
import torch

from fedcso.core.estimator import sample
from fedcso.core.oracle import Cohort, Oracle
from fedcso.core.problem import Batch, Problem, split_steps
from fedcso.core.streams import stream
from fedcso.core.tree import index, map_leaves, named_leaves, stack
from fedcso.estimators.mean_outside import mean_outside
from fedcso.estimators.plain import plain
from tests import transcription as literal
from tests.helpers import (
    CASES,
    CLEARLY,
    assert_close,
    differentiated,
    few_points,
    finite_difference,
    gap,
    invariant_logistic,
    nested_quadratic,
    standard_error,
)

every_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


def one_batch(case, client: int = 0, b: int = 4, m: int = 5) -> Batch:
    (batch,) = split_steps(sample(case.problem, case.clients[client], stream(7, client, 0), 1, b, m), 1)
    return batch


def a_point(case, seed: int = 0):
    return case.problem.init(stream(seed, 0, 0))


# ----------------------------------------------------------------------------- value and gradient


def test_value_is_f_of_the_mean_of_g_on_the_nested_quadratic():
    case = nested_quadratic()
    x, batch = a_point(case), one_batch(case)
    by_hand = [
        0.5 * sum((eta[:, i].mean() * x[i] - xi[i]) ** 2 for i in range(len(x)))
        for xi, eta in zip(batch.xi, batch.eta, strict=True)
    ]
    assert_close(Oracle(case.problem, plain).value(x, batch), sum(by_hand) / len(by_hand))


def test_value_is_f_of_the_mean_of_g_on_invariant_logistic():
    case = invariant_logistic()
    x, batch = a_point(case), one_batch(case)
    losses = torch.log(1 + torch.exp(-batch.xi.label * (batch.eta @ x).mean(1)))
    square = case.problem.sharpness * x**2
    by_hand = losses.mean() + case.problem.penalty * (square / (1 + square)).sum()
    assert_close(Oracle(case.problem, plain).value(x, batch), by_hand)


@pytest.mark.parametrize("estimator", [plain, differentiated, mean_outside])
@pytest.mark.parametrize("case", [nested_quadratic(), invariant_logistic()], ids=["quadratic", "logistic"])
def test_gradient_is_that_of_the_value(case, estimator):
    oracle = Oracle(case.problem, estimator)
    x, batch = a_point(case), one_batch(case)
    expected = finite_difference(lambda point: oracle.value(point, batch), x)
    assert_close(oracle.grad(x, batch), expected, tolerance=1e-8)


@every_case
def test_value_and_grad_answers_both_questions(case):
    oracle = Oracle(case.problem, plain)
    x, batch = a_point(case), one_batch(case)
    value, gradient = oracle.value_and_grad(x, batch)
    assert_close(value, oracle.value(x, batch))
    assert_close(gradient, oracle.grad(x, batch), tolerance=0.0)
    assert not value.requires_grad
    assert not any(leaf.requires_grad for _, leaf in named_leaves(gradient))


@every_case
def test_asking_leaves_the_point_alone(case):
    x, batch = a_point(case), one_batch(case)
    before = map_leaves(torch.clone, x)
    Oracle(case.problem, plain).grad(x, batch)
    assert_close(x, before, tolerance=0.0)


CLOSED_FORMS = {name: case for name, case in CASES.items() if case.problem.closed_form is not None}


@pytest.mark.parametrize("case", CLOSED_FORMS.values(), ids=CLOSED_FORMS)
@pytest.mark.parametrize("magnitude", [0.0, 1.0, 100.0])
def test_closed_form_is_what_differentiation_gives(case, magnitude):
    x, batch = magnitude * a_point(case), one_batch(case)
    by_formula = Oracle(case.problem, plain).value_and_grad(x, batch)
    by_differentiation = Oracle(case.problem, differentiated).value_and_grad(x, batch)
    assert_close(by_formula, by_differentiation)


def test_mean_outside_averages_f_over_single_samples():
    case = nested_quadratic()
    x, batch = a_point(case), one_batch(case)
    single = [Batch(batch.xi, batch.eta[:, j : j + 1]) for j in range(batch.eta.shape[1])]
    by_hand = sum(plain(case.problem, x, part) for part in single) / len(single)
    assert_close(mean_outside(case.problem, x, batch), by_hand)


# ----------------------------------------------------------------------------------------- the bias


class Bias(NamedTuple):
    """Return Monte-Carlo estimates of E∇F̂ − ∇F for several m, and their standard errors."""

    sizes: list[int]
    means: torch.Tensor
    errors: torch.Tensor


def monte_carlo_bias(problem: Problem, data, x, truth, estimator=plain, draws: int = 100_000) -> Bias:
    """Return all draws in one pass, as a cohort with one client per draw, each with one ξ."""
    sizes = [1, 2, 4, 8, 16]
    means, errors = [], []
    for m in sizes:
        batch = sample(problem, data, stream(11, 0, m), steps=draws, b=1, m=m)
        everywhere = x.expand(1, draws, *x.shape)
        gradients = Cohort(problem, 1, estimator).grad(everywhere, batch)[0]
        means.append((gradients - truth).mean(0))
        errors.append(standard_error(gradients))
    return Bias(sizes, torch.stack(means), torch.stack(errors))


def log_log_slope(bias: Bias, power: int) -> tuple[float, float]:
    """Return the least-squares slope of log ‖bias‖^power over log m, and its standard error."""
    norms = bias.means.norm(dim=1)
    # The error of log ‖v‖ is at most that of v, relative to ‖v‖.
    relative = bias.errors.norm(dim=1) / norms
    log_m = np.log(bias.sizes)
    weights = (log_m - log_m.mean()) / ((log_m - log_m.mean()) ** 2).sum()
    slope = float(weights @ (power * norms.log().numpy()))
    return slope, float(np.linalg.norm(weights * power * relative.numpy()))


def assert_slope(bias: Bias, power: int, expected: float) -> None:
    """Assert that the fitted slope is the expected one within four standard errors, which must be small."""
    slope, error = log_log_slope(bias, power)
    assert error < 0.1 * power
    assert abs(slope - expected) < 4 * error


@cache
def quadratic_bias(estimator=plain) -> tuple[Bias, Problem, torch.Tensor]:
    case = nested_quadratic()
    problem, clients = case.problem, case.clients
    x = torch.tensor([2.0, -1.0, 3.0], dtype=torch.float64)
    _, truth = problem.exact(x, clients[:1], [1.0])
    return monte_carlo_bias(problem, clients[0], x, truth, estimator), problem, x


def test_bias_of_the_nested_quadratic_is_the_one_it_states():
    bias, problem, x = quadratic_bias()
    stated = torch.stack([problem.bias(x, m) for m in bias.sizes])
    assert ((bias.means - stated).abs() < 4 * bias.errors).all()


def test_bias_of_a_smooth_f_falls_like_one_over_m():
    """For a quadratic f it is (τ²/m) x exactly: its square falls like m⁻², faster than Lemma A.2 promises."""
    bias, _, _ = quadratic_bias()
    assert_slope(bias, power=1, expected=-1)
    assert_slope(bias, power=2, expected=-2)


@dataclass(frozen=True)
class Kinked(Problem):
    """g = x + η with η ~ N(0, σ²), f(y) = ½ max(y, 0)²: smooth, but its slope has a kink at 0.

    ∇F(0) = 0, and E∇F̂(0) = E max(η̄, 0) = σ/√(2πm).
    """

    sigma: float = 2.0
    broadcasts = True

    def init(self, rng):
        return torch.zeros(1, dtype=torch.float64)

    def sample_outer(self, data, rng, shape):
        return torch.zeros(*shape, 1, dtype=torch.float64)

    def sample_inner(self, data, rng, xi, m):
        return self.sigma * torch.randn(*xi.shape[:-1], m, 1, generator=rng, dtype=torch.float64)

    def inner(self, x, xi, eta):
        return x.unsqueeze(-2) + eta.mean(-2)

    def outer(self, y, xi):
        return 0.5 * y.clamp_min(0).square().sum(-1)


def test_squared_bias_of_a_kinked_f_falls_like_one_over_m():
    """The rate of Lemma A.2(a), ‖E∇F̂ − ∇F‖² ≤ L_g² S_f² σ_g² / m, is attained, so it can't be improved."""
    problem = Kinked()
    bias = monte_carlo_bias(problem, None, problem.init(stream(0, 0, 0)), truth=0.0)
    stated = torch.tensor([[problem.sigma / math.sqrt(2 * math.pi * m)] for m in bias.sizes])
    assert ((bias.means - stated).abs() < 4 * bias.errors).all()
    assert_slope(bias, power=2, expected=-1)
    # L_g = S_f = 1 and σ_g = σ here.
    lemma = torch.tensor([problem.sigma**2 / m for m in bias.sizes])
    assert (bias.means.square().sum(1) < lemma).all()


def test_bias_with_the_mean_outside_does_not_fall():
    bias, problem, x = quadratic_bias(mean_outside)
    assert ((bias.means - problem.bias(x, 1)).abs() < 4 * bias.errors).all()
    assert_slope(bias, power=1, expected=0)


# --------------------------------------------------------------------------------- inner and chain

CHAINS = {
    "nested_quadratic": (nested_quadratic(), literal.quadratic_inner, literal.quadratic_chain),
    "invariant_logistic": (
        invariant_logistic(),
        literal.logistic_inner,
        literal.logistic_chain(invariant_logistic().problem),
    ),
}


@pytest.mark.parametrize(("case", "inner", "chain"), CHAINS.values(), ids=CHAINS)
def test_chain_takes_the_jacobian_at_x_and_the_slope_at_y(case, inner, chain):
    x, batch = a_point(case), one_batch(case)
    g_hat, pull_back = Oracle(case.problem, plain).inner(x, batch)
    assert_close(g_hat, inner(x, batch))
    elsewhere = g_hat + 0.7
    assert_close(pull_back(elsewhere), chain(x, elsewhere, batch))


@every_case
def test_chain_at_the_inner_value_itself_is_the_gradient(case):
    x, batch = a_point(case), one_batch(case, b=1)
    oracle = Oracle(case.problem, plain)
    g_hat, pull_back = oracle.inner(x, batch)
    assert_close(pull_back(g_hat), oracle.grad(x, batch))


@pytest.mark.parametrize(
    "case", [nested_quadratic(), invariant_logistic(), few_points()], ids=["quadratic", "logistic", "few"]
)
def test_each_outer_sample_can_have_an_inner_value_of_its_own(case):
    """Against (1/b) Σ_i (∂ĝ_i/∂x)ᵀ ∇f_i(y_i) + ∇r with Jacobians by autograd, one ξ at a time."""
    x, batch = a_point(case), one_batch(case)
    g_hat, chain = Oracle(case.problem, plain).inner(x, batch, each=True)
    assert not g_hat.requires_grad
    elsewhere = g_hat + torch.linspace(-1, 1, g_hat.numel(), dtype=g_hat.dtype).reshape(g_hat.shape)
    ones = [Batch(*(map_leaves(lambda leaf, i=i: leaf[i : i + 1], part) for part in batch)) for i in range(len(g_hat))]
    regulariser = case.problem.regulariser
    gradient = torch.zeros_like(x) if regulariser is None else torch.func.grad(regulariser)(x)
    for one, value, tracked in zip(ones, g_hat, elsewhere, strict=True):

        def inner(point, one=one):
            return case.problem.inner(point, one.xi, one.eta)[0]

        def outer(y, one=one):
            return case.problem.outer(y.unsqueeze(0), one.xi)[0]

        found, transposed_jacobian = torch.func.vjp(inner, x)
        assert_close(value, found)
        gradient = gradient + transposed_jacobian(torch.func.grad(outer)(tracked))[0] / len(ones)
    assert_close(chain(elsewhere), gradient)
    assert gap(Oracle(case.problem, plain).grad(x, batch), gradient) > CLEARLY


# ------------------------------------------------------------------------------ one client, and many


@pytest.mark.parametrize("estimator", [plain, differentiated], ids=["plain", "vmapped"])
@pytest.mark.parametrize("grid", [1, 3])
@every_case
def test_a_cohort_answers_as_its_clients_would_alone(case, grid, estimator):
    clients = range(len(case.clients))
    batches = [one_batch(case, n) for n in clients]
    points = [[a_point(case, seed=10 * g + n) for n in clients] for g in range(grid)]
    x, batch = stack([stack(row) for row in points]), stack(batches)
    cohort, alone = Cohort(case.problem, grid, estimator), Oracle(case.problem, estimator)

    value, gradient = cohort.value_and_grad(x, batch)
    g_hat, chain = cohort.inner(x, batch)
    pulled_back = chain(g_hat)
    each, chain_each = cohort.inner(x, batch, each=True)
    pulled_back_each = chain_each(map_leaves(torch.exp, each))
    moved = cohort.move(x, gradient, 0.1)
    for g in range(grid):
        for n in clients:
            expected_value, expected_gradient = alone.value_and_grad(points[g][n], batches[n])
            expected_g_hat, expected_chain = alone.inner(points[g][n], batches[n])
            assert_close(value[g, n], expected_value)
            assert_close(index(gradient, (g, n)), expected_gradient)
            assert_close(index(g_hat, (g, n)), expected_g_hat)
            assert_close(index(pulled_back, (g, n)), expected_chain(expected_g_hat))
            expected_each, expected_chain_each = alone.inner(points[g][n], batches[n], each=True)
            assert_close(index(each, (g, n)), expected_each)
            elsewhere = map_leaves(torch.exp, expected_each)
            assert_close(index(pulled_back_each, (g, n)), expected_chain_each(elsewhere))
            assert_close(index(moved, (g, n)), alone.move(points[g][n], expected_gradient, 0.1))


def test_a_cohort_can_move_by_a_step_size_for_each_grid_point():
    case = nested_quadratic()
    step_sizes = torch.tensor([0.1, 0.2], dtype=torch.float64)
    x, direction = torch.zeros(2, 4, 3, dtype=torch.float64), torch.ones(2, 4, 3, dtype=torch.float64)
    moved = Cohort(case.problem, 2, plain).move(x, direction, step_sizes)
    assert_close(moved, -step_sizes.reshape(2, 1, 1).expand(2, 4, 3))


def test_a_move_ends_inside_the_set():
    case = CASES["in_ball"]
    x, far = a_point(case), torch.full((3,), 100.0, dtype=torch.float64)
    moved = Oracle(case.problem, plain).move(x, far, 1.0)
    assert math.isclose(float(moved.norm()), case.problem.radius)


def test_the_watch_sees_every_loss_and_gradient():
    case = nested_quadratic()
    seen = []
    oracle = Oracle(case.problem, plain, watch=lambda loss, gradient: seen.append((loss, gradient)))
    x, batch = a_point(case), one_batch(case)
    answers = [oracle.value_and_grad(x, batch), oracle.value_and_grad(2 * x, batch)]
    assert_close(seen, answers, tolerance=0.0)


def test_a_steered_oracle_moves_elsewhere_and_counts_with_the_one_it_is_made_of():
    case = CASES["in_ball"]
    oracle, x, u = Oracle(case.problem, plain), torch.zeros(3, dtype=torch.float64), torch.ones(3, dtype=torch.float64)
    outer = oracle.steered(lambda x, direction: direction + 0.1)
    inner = outer.steered(lambda x, direction: 2 * direction)  # the innermost changes the direction first
    assert_close(inner.move(x, u, 0.1), x - 0.1 * (2 * u + 0.1))
    assert_close(oracle.move(x, u, 0.1), x - 0.1 * u)
    assert float(inner.move(x, u, 100.0).norm()) == pytest.approx(case.problem.radius)
    batch = one_batch(case, b=4)
    assert_close(inner.grad(x, batch), oracle.grad(x, batch), tolerance=0.0)
    assert inner.costs == oracle.costs == outer.costs
    assert oracle.costs.gradients == 8
