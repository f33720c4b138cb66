"""The value of a trial's information: the closed form compared with sampling, and trials that are planned too small."""

import math

import pytest
import torch

from fedcso.algorithms import FCSGM
from fedcso.core.plan import Plan
from fedcso.core.streams import stream
from fedcso.engines import run
from fedcso.problems.information import Information, Prior, expected_positive_part, information
from tests.command_line import BAD_INPUT, call
from tests.helpers import assert_close, finite_difference, standard_error
from tests.problems.sampling import sample_gradients

PROBLEM = Information(strata=2, prior_width=0.8, noise=2.0, cost=0.001)
PRIORS = [Prior(torch.tensor(means, dtype=torch.float64)) for means in ([0.3, -0.2], [0.0, 0.6])]
X = torch.tensor([1.5, 2.5], dtype=torch.float64)


@pytest.mark.parametrize("m", [1, 4, math.inf])
def test_sampled_values_and_gradients_have_the_mean_of_the_formula(m):
    """With infinitely many draws the posterior mean itself decides."""
    prior = PRIORS[:1]
    value = PROBLEM.expected_objective(X, prior, [1.0], m) - PROBLEM.regulariser(X)
    gradient = finite_difference(lambda x: PROBLEM.expected_objective(x, prior, [1.0], m) - PROBLEM.regulariser(x), X)
    if m == math.inf:
        xi = PROBLEM.sample_outer(prior[0], stream(0, 0, 0), (100_000,))
        losses = PROBLEM.outer(PROBLEM.inner(X, xi, torch.zeros(1, 1, 2, dtype=torch.float64)), xi)
        assert abs(losses.mean() - value) < 4 * standard_error(losses)
        return
    sampled = sample_gradients(PROBLEM, prior[0], X, 100_000, m)
    sampled.assert_mean_value(value)
    sampled.assert_mean_gradient(gradient)
    bias = gradient - finite_difference(lambda x: PROBLEM.exact(x, prior, [1.0])[0] - PROBLEM.regulariser(x), X)
    assert bias.norm() > 6 * standard_error(sampled.gradients).norm()


def test_exact_gradient_is_that_of_the_exact_value():
    weights = [1.0, 3.0]
    _, gradient = PROBLEM.exact(X, PRIORS, weights)
    assert_close(gradient, finite_difference(lambda x: PROBLEM.exact(x, PRIORS, weights)[0], X), tolerance=1e-8)
    values, gradients = PROBLEM.exact(torch.stack([X, 2 * X]), PRIORS, weights)
    assert_close((values[1], gradients[1]), PROBLEM.exact(2 * X, PRIORS, weights))


def test_the_positive_part_of_a_gaussian_has_its_mean():
    z = torch.linspace(-12, 12, 200_001, dtype=torch.float64)
    density = torch.exp(-z.square() / 2) / math.sqrt(2 * math.pi)
    expected = torch.trapezoid((0.4 + 0.7 * z).relu() * density, z)
    found = expected_positive_part(torch.tensor(0.4, dtype=torch.float64), torch.tensor(0.7, dtype=torch.float64))
    assert_close(found, expected, tolerance=1e-8)


def test_with_few_posterior_draws_trials_are_planned_too_small():
    task = information(clients=4)

    def patients(m):
        trace = run(FCSGM(3.0, 0.3), task, Plan(rounds=20, local_steps=10, outer_batch=16, inner_batch=m))
        return trace.rows[-1]["patients"], trace.rows[-1]["net_gain"]

    few, many = patients(1), patients(32)
    assert few[0] < 0.3 * many[0]
    assert few[1] < many[1]


@pytest.mark.parametrize(
    ("options", "field"),
    [(["--cost", "0"], "cost = 0.0"), (["--strata", "0"], "strata = 0"), (["--unlike", "-1"], "unlike = -1.0")],
)
def test_a_bad_setting_ends_with_code_2_and_its_name(options, field):
    outcome = call("run", "information", *options)
    assert outcome.code == BAD_INPUT
    assert field in outcome.err
