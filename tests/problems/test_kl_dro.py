"""KL-regularised robustness within clients: enumeration, the bias of a small m, and no overflow."""

import pytest
import torch

from fedcso.core.oracle import Oracle
from fedcso.core.problem import Batch
from fedcso.core.streams import stream
from fedcso.estimators.plain import plain
from fedcso.problems.kl_dro import KLDRO
from fedcso.problems.linear_points import LOGISTIC, SQUARED, Points
from tests.command_line import BAD_INPUT, call
from tests.helpers import assert_close, differentiated, finite_difference
from tests.problems.sampling import assert_bias_of_the_gradient_falls_with_m

X = torch.tensor([0.5, -0.3, 0.2], dtype=torch.float64)
RNG = torch.Generator().manual_seed(0)
DATA = Points(
    torch.arange(12),
    torch.randn(12, 2, generator=RNG, dtype=torch.float64),
    torch.randn(12, generator=RNG, dtype=torch.float64).sign(),
)
HALF = Points(*(part[:5] for part in DATA))
KINDS = {"regression": KLDRO(2, SQUARED, 1.5, 0.4), "classification": KLDRO(2, LOGISTIC, 0.3, 0.7)}


@pytest.mark.parametrize("name", KINDS)
def test_the_exact_value_is_the_log_mean_exp_of_all_losses(name):
    problem = KINDS[name]
    losses = problem.loss.value(DATA.inputs @ X[:2] + X[2], DATA.target)
    value, gradient = problem.exact(X, [DATA], [1.0])
    assert_close(value, problem.temperature * torch.exp(losses / problem.temperature).mean().log())
    assert_close(gradient, finite_difference(lambda x: problem.exact(x, [DATA], [1.0])[0], X), tolerance=1e-8)
    other, _ = problem.exact(X, [HALF], [1.0])
    assert_close(problem.exact(X, [DATA, HALF], [1.0, 3.0])[0], (value + 3 * other) / 4)
    values, gradients = problem.exact(torch.stack([X, 2 * X]), [DATA], [1.0])
    assert_close((values[0], gradients[0]), (value, gradient))


def test_for_gaussian_residuals_it_is_the_formula():
    """F = −(λ/2) log(1 − s²/λ) + μ²λ / 2(λ − s²), with quantiles in place of a Gaussian sample."""
    z = torch.special.ndtri((torch.arange(200_000, dtype=torch.float64) + 0.5) / 200_000)
    mean, s, temperature = 0.3, 0.6, 2.0
    data = Points(torch.arange(len(z)), z.unsqueeze(1), torch.full_like(z, mean))
    value, _ = KLDRO(1, SQUARED, temperature).exact(torch.tensor([s, 0.0], dtype=torch.float64), [data], [1.0])
    left = torch.tensor(1 - s**2 / temperature)
    assert float(value) == pytest.approx(float(-temperature / 2 * left.log() + mean**2 / (2 * left)), rel=1e-4)


@pytest.mark.parametrize("name", KINDS)
def test_the_bias_falls_with_m_as_the_variance_of_g_says(name):
    """E F̂ − F = −(λ/2m) Var(g)/(E g)² + O(1/m²)."""
    problem = KINDS[name]
    every = problem.inner(X, torch.zeros(12), Points(*(part.unsqueeze(1) for part in DATA)))
    leading = -problem.temperature / 2 * every.var(correction=0) / every.mean().square()
    value, _ = problem.exact(X, [DATA], [1.0])
    for m in (16, 64):
        xi = problem.sample_outer(DATA, stream(0, 0, 0), (20_000, 1))
        eta = problem.sample_inner(DATA, stream(0, 0, 1), xi, m)
        g = problem.inner(X, xi, Points(*(part.squeeze(1) for part in eta)))
        relative = g / every.mean() - 1  # of mean 0: takes most of the noise away
        bias = (problem.outer(g, torch.zeros(20_000)) - value - problem.temperature * relative).mean()
        assert float(m * bias) == pytest.approx(float(leading), rel=0.12)


@pytest.mark.parametrize("name", KINDS)
def test_the_bias_of_the_gradient_falls_with_m(name):
    eta = Points(*(part.unsqueeze(0) for part in HALF))
    assert_bias_of_the_gradient_falls_with_m(KINDS[name], X, torch.zeros(1, dtype=torch.int64), eta)


@pytest.mark.parametrize("name", KINDS)
def test_the_formula_is_automatic_differentiation_and_nothing_overflows(name):
    problem = KINDS[name]
    xi = problem.sample_outer(DATA, stream(0, 0, 0), (3,))
    batch = Batch(xi, problem.sample_inner(DATA, stream(0, 0, 1), xi, 5))
    by_formula, by_autograd = (Oracle(problem, estimator) for estimator in (plain, differentiated))
    assert_close(by_formula.value_and_grad(X, batch), by_autograd.value_and_grad(X, batch))
    for oracle in (by_formula, by_autograd):
        value, gradient = oracle.value_and_grad(1e5 * X, batch)
        assert torch.isfinite(value)
        assert torch.isfinite(gradient).all()


@pytest.mark.parametrize(
    ("options", "field"), [(["--temperature", "0"], "temperature = 0.0"), (["--data", "iris"], "data = 'iris'")]
)
def test_a_bad_setting_ends_with_code_2_and_its_name(options, field):
    outcome = call("run", "kl_dro", *options)
    assert outcome.code == BAD_INPUT
    assert field in outcome.err
