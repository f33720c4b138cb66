"""Estimators with levels from drawn means: the same losses and the same distribution as the estimators themselves."""

import pytest
import torch

from fedcso.core.oracle import Cohort
from fedcso.core.problem import Batch, split_steps
from fedcso.core.streams import stream
from fedcso.estimators import ESTIMATORS
from fedcso.estimators.plain import plain
from fedcso.experiments.levels import logistic_by_levels
from fedcso.problems import InvariantLogistic
from fedcso.theory.bias_terms import LEVELS
from tests.helpers import assert_close

NAMES = ["plain", "extrapolated", "three_level"]
X = torch.tensor([0.9, -0.4], dtype=torch.float64)


def drawn(problem, m=8, b=3):
    batch = plain.draw(problem, problem.clients(2)[1], stream(0, 1, 2), 1, b, m).batch
    return split_steps(batch, 1)[0]


@pytest.mark.parametrize("name", NAMES)
def test_the_losses_are_those_of_the_estimator_on_the_means_of_the_blocks(name):
    problem = logistic_by_levels(name, noise=2.0)
    batch = drawn(problem)
    blocks = LEVELS[name].multiple
    smallest = Batch(batch.xi, batch.eta[:, -blocks:])  # g is linear in η: a block may be replaced by its mean
    original = InvariantLogistic(2, noise=2.0, dtype=torch.float64)
    assert_close(plain(problem, X, batch), ESTIMATORS[name](original, X, smallest))


@pytest.mark.parametrize("name", NAMES)
def test_the_formula_is_what_differentiation_gives(name):
    problem = logistic_by_levels(name, noise=2.0)
    batch = drawn(problem)
    point = X.clone().requires_grad_()
    loss = plain(problem, point, batch).mean() + problem.regulariser(point)
    (gradient,) = torch.autograd.grad(loss, point)
    value, formula = problem.closed_form(X, batch.xi, batch.eta)
    assert_close(value, loss.detach())
    assert_close(formula, gradient)


@pytest.mark.parametrize("name", NAMES)
def test_the_expectation_is_that_of_m_samples(name):
    """The mean of many estimates differs from ∇F by the estimator's exact bias."""
    problem, m, draws = logistic_by_levels(name, noise=3.0), 4, 100_000
    clients = problem.clients(1)
    batch = plain.draw(problem, clients[0], stream(0, 0, 0), draws, 1, m).batch
    found = Cohort(problem, 1, plain).grad(X.expand(1, draws, -1), batch)[0]
    error = found.std(0).norm() / draws**0.5
    bias = problem.extrapolated_bias(X, clients, m)
    truth = problem.exact(X, clients, [1.0])[1]
    assert (found.mean(0) - truth - bias).norm() < 3 * error
    assert bias.norm() > 6 * error  # the check can tell the bias from none


@pytest.mark.parametrize("name", NAMES)
def test_m_is_the_least_with_so_small_a_bias_at_the_minimum(name):
    problem, most = logistic_by_levels(name, noise=2.0), 0.01
    clients = problem.clients(2, unlike_truth=2.0)
    x = problem.minimiser(clients)
    assert problem.exact(x, clients, [1.0, 1.0])[1].norm() < 1e-5
    m, multiple = problem.least_inner_batch(x, clients, most), LEVELS[name].multiple
    assert m % multiple == 0
    assert problem.extrapolated_bias(x, clients, m).norm() <= most
    assert problem.extrapolated_bias(x, clients, m - multiple).norm() > most


def test_samples_are_counted_as_if_all_had_been_drawn():
    problem = logistic_by_levels("three_level", noise=2.0)
    found = plain.draw(problem, problem.clients(1)[0], stream(0, 0, 0), 5, 2, 16)
    assert found.costs.inner_samples == 5 * 2 * 16
    assert found.batch.eta.shape == (5, 2, 1 + 2 + 4, 2)
