"""The diagnosis compared with the truth where it is known."""

import math

import pytest
import torch

from fedcso import diagnose
from fedcso.core.errors import FedcsoError, InvalidValue
from fedcso.core.oracle import Cohort
from fedcso.core.streams import stream
from fedcso.core.tree import norm
from fedcso.estimators.extrapolated import extrapolated
from fedcso.estimators.independent_jacobian import independent_jacobian
from fedcso.estimators.mean_outside import mean_outside
from fedcso.estimators.plain import plain
from fedcso.estimators.three_level import three_level
from fedcso.problems import InvariantLogistic, NestedQuadratic
from fedcso.theory.verdict import Magnitude
from tests.core.test_estimator import Kinked
from tests.helpers import CASES, FINITE, classification, nested_quadratic

CASE = nested_quadratic()
X = torch.tensor([2.0, -1.0, 3.0], dtype=torch.float64)
SIZES = [1, 2, 8]


def contains(interval: Magnitude, truth: float, times: float = 1.0) -> bool:
    """Return whether the interval, widened by a factor, contains the truth; of many intervals some miss."""
    reach = times * (interval.high - interval.low) / 2
    return abs(interval.value - truth) <= reach


def true_noise(problem, clients, x, m: int, draws: int = 200_000, estimator=plain) -> float:
    """Return the noise computed by brute force, averaged over the clients."""
    total = 0.0
    for data in clients:
        batch = plain.draw(problem, data, stream(99, 0, m), draws // len(clients), 1, m).batch
        rows = batch.eta.shape[0]
        gradients = Cohort(problem, 1, estimator).grad(x.expand(1, rows, *x.shape), batch)[0]
        total += float((gradients - gradients.mean(0)).square().sum(-1).mean())
    return math.sqrt(total / len(clients))


def test_the_bias_of_the_nested_quadratic_is_found_for_every_size():
    found = diagnose(CASE.problem, X, CASE.clients, SIZES, samples=4000)
    for size in found.sizes:
        truth = float(CASE.problem.bias(X, size.m).norm())
        assert contains(size.bias, truth, times=1.5)
        assert size.bias.high - size.bias.low < 0.3 * truth
    exact = CASE.problem.exact(X, CASE.clients, [1.0] * 4)[1]
    assert contains(found.gradient, float(exact.norm()), times=1.5)


def test_the_noise_is_that_of_a_single_estimate():
    found = diagnose(CASE.problem, X, CASE.clients, SIZES, samples=4000)
    for size in found.sizes:
        assert contains(size.noise, true_noise(CASE.problem, CASE.clients, X, size.m), times=2)


def test_the_bias_of_a_smooth_f_without_a_formula_is_found():
    """Compare with the exact gradient and a brute-force mean of the estimator."""
    problem = InvariantLogistic(dimension=2, noise=1.5, dtype=torch.float64)
    (source,) = problem.clients(1)
    x = torch.tensor([2.0, -1.0], dtype=torch.float64)
    batch = plain.draw(problem, source, stream(1, 0, 0), 400_000, 1, 4).batch
    mean = Cohort(problem, 1, plain).grad(x.expand(1, 400_000, 2), batch)[0].mean(0)
    truth = float((mean - problem.exact(x, [source], [1.0])[1]).norm())
    found = diagnose(problem, x, [source], [1, 4, 16], samples=4000)
    assert contains(found.sizes[1].bias, truth, times=2)


def test_intervals_have_their_coverage():
    """Of 60 intervals about 57 contain the truth."""
    problem, x = NestedQuadratic(1), torch.tensor([2.0], dtype=torch.float64)
    clients = problem.centres(2)
    truth, exact = 0.5, float(problem.exact(x, clients, [1.0, 1.0])[1].norm())
    runs = [diagnose(problem, x, clients, [4], samples=64, seed=seed) for seed in range(60)]
    assert float(problem.bias(x, 4)) == truth
    assert sum(run.sizes[0].bias.low <= truth <= run.sizes[0].bias.high for run in runs) >= 50
    assert sum(run.gradient.low <= exact <= run.gradient.high for run in runs) >= 50


def test_squared_lengths_are_not_inflated_by_noise():
    """If there is no bias, none is found on average, because squared norms are estimated without bias."""
    case = classification()
    found = diagnose(case.problem, case.problem.init(stream(0, 0, 0)), case.clients, [1, 4], samples=64)
    assert [size.bias for size in found.sizes] == [(0.0, 0.0, 0.0)] * 2
    assert found.needed() == 1


def test_a_kinked_f_is_underestimated_by_what_is_documented():
    """The bias falls like 1/√m, and 2(1 − 1/√2) = 0.586 of it is found at the largest m."""
    problem = Kinked()
    x = torch.zeros(1, dtype=torch.float64)
    found = diagnose(problem, x, [None], [4], samples=20_000)
    share = found.sizes[0].bias.value / (problem.sigma / math.sqrt(2 * math.pi * 4))
    assert share == pytest.approx(2 - math.sqrt(2), rel=0.15)


def test_clients_count_by_their_weights():
    """Use a point where one client has twice the gradient of the other."""
    problem = NestedQuadratic(1)
    x, clients = torch.tensor([2.0], dtype=torch.float64), problem.centres(2, heterogeneity=2.0)
    for weights in ([1.0, 0.0], [0.25, 0.75]):
        found = diagnose(problem, x, clients, [2], samples=4000, weights=weights)
        exact = problem.exact(x, clients, weights)[1]
        assert contains(found.gradient, float(exact.norm()), times=2)


@pytest.mark.parametrize("name", ["auprc", "cross_entropy", "invariant_logistic_unlike", "in_ball"])
def test_any_problem_can_be_diagnosed(name):
    case = (CASES | FINITE)[name]
    x = case.problem.init(stream(0, 0, 0))
    found = diagnose(case.problem, x, case.clients, [1, 2], samples=32, batches=4)
    assert found.gradient.high > 0
    assert all(math.isfinite(part) for size in found.sizes for part in (*size.bias, *size.noise))
    assert float(norm(x)) == float(norm(case.problem.init(stream(0, 0, 0))))  # x is not changed


def test_what_it_costs_is_counted():
    found = diagnose(CASE.problem, X, CASE.clients, [1, 4], samples=32, batches=4)
    assert found.costs.outer_samples == 32
    assert found.costs.inner_samples == 32 * 8


def test_the_same_seed_and_round_find_the_same_and_others_do_not():
    once, again, elsewhere, later = (
        diagnose(CASE.problem, X, CASE.clients, [2], samples=16, batches=4, seed=seed, round=round)
        for seed, round in ((1, 0), (1, 0), (2, 0), (1, 5))
    )
    assert once == again
    assert once != elsewhere
    assert once != later


@pytest.mark.parametrize("estimator", [extrapolated, three_level, independent_jacobian])
def test_an_estimator_without_bias_is_found_to_have_none(estimator):
    """f is quadratic, so the bias of plain is exactly of order 1/m, and nothing is left of it."""
    found = diagnose(CASE.problem, X, CASE.clients, [4], samples=2000, estimator=estimator)
    (size,) = found.sizes
    assert size.bias.low == 0
    assert size.bias.value < 0.2 * float(CASE.problem.bias(X, 4).norm())
    assert found.gradient == diagnose(CASE.problem, X, CASE.clients, [4], samples=2000).gradient


def test_the_noise_of_another_estimator_is_its_own():
    """Fewer samples in each mean make independent_jacobian noisier than plain."""
    problem, data, x = NestedQuadratic(1, spread=0.1), torch.ones(1).double(), torch.full((1,), 0.3).double()
    found, of_plain = (
        diagnose(problem, x, [data], [4], samples=4000, batches=100, estimator=one).sizes[0].noise
        for one in (independent_jacobian, plain)
    )
    truth = true_noise(problem, [data], x, 4, draws=50_000, estimator=independent_jacobian)
    assert found.value == pytest.approx(truth, rel=0.2)
    assert of_plain.value < 0.6 * found.value


def test_the_mean_outside_f_has_the_bias_of_one_sample():
    found = diagnose(CASE.problem, X, CASE.clients, [4], samples=4000, estimator=mean_outside)
    assert contains(found.sizes[0].bias, float(CASE.problem.bias(X, 1).norm()), times=2)


# ---------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"sizes": []}, "at least one m"),
        ({"sizes": [0]}, "sizes = 0"),
        ({"sizes": [3, 4]}, "a divisor of 8, twice the largest size"),
        ({"batches": 3}, "batches = 3"),
        ({"samples": 0}, "samples = 0"),
        ({"averaged": 0}, "averaged = 0"),
        ({"sizes": [3], "estimator": extrapolated}, "inner_batch = 3 .*even"),
    ],
)
def test_sizes_are_checked(options, says):
    with pytest.raises(InvalidValue, match=says):
        diagnose(CASE.problem, X, CASE.clients, **options)


def test_a_problem_that_draws_only_the_mean_is_refused():
    problem = InvariantLogistic(dimension=2, draw_mean=True)
    with pytest.raises(FedcsoError, match="set draw_mean to false"):
        diagnose(problem, torch.ones(2), problem.clients(2), [2])
