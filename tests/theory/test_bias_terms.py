"""The bias of estimators as a term of the theorems: orders by enumeration, constants, and the bounds with it."""

import math
from dataclasses import replace
from itertools import product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fedcso.core.constants import Constants
from fedcso.core.errors import FedcsoError, InvalidValue
from fedcso.core.oracle import Cohort
from fedcso.core.problem import Batch, Problem
from fedcso.core.streams import stream
from fedcso.core.task import Task
from fedcso.engines import run_grid
from fedcso.estimators import ESTIMATORS
from fedcso.experiments.complexity import Quadratic, running_means
from fedcso.problems import InvariantLogistic, NestedQuadratic
from fedcso.theory.bias_terms import LEVELS, BiasTerm, any_f, smooth_f
from fedcso.theory.prescribe import SINGLE_MACHINE, THEOREMS, bound, build_algorithm, prescribe

C = Constants(
    outer_smoothness=0.5,
    outer_slope=2.0,
    inner_smoothness=0.1,
    inner_slope=1.5,
    inner_noise=0.7,
    gap=3.0,
    smooth_bias={"plain": 3.0, "extrapolated": 50.0, "three_level": 900.0},
)
FEDERATED = [method for method in THEOREMS if method not in SINGLE_MACHINE]
BY_LEVELS = ["plain", "extrapolated", "three_level"]


# ------------------------------------------------------------------- exact expectations by enumeration


class Enumerated(Problem):
    """g_η(x) = η x² and f(y) = log cosh y, where η is 0 or 2: skewed, and ∇g is as random as g."""

    VALUES, CHANCES = (0.0, 2.0), (0.7, 0.3)

    def init(self, rng):
        raise NotImplementedError

    sample_outer = sample_inner = init

    def inner(self, x, xi, eta):
        return eta.mean(1) * x**2

    def outer(self, y, xi):
        return torch.log(torch.cosh(y))


X = 0.7
MEAN = sum(v * p for v, p in zip(Enumerated.VALUES, Enumerated.CHANCES, strict=True))
ETA_MOMENTS = [
    sum(p * (v - MEAN) ** k for v, p in zip(Enumerated.VALUES, Enumerated.CHANCES, strict=True)) for k in range(4)
]
TRUTH = 2 * X * MEAN * math.tanh(MEAN * X**2)


def expected_gradient(m: int) -> float:
    """Return E ∇F̂ with m samples of the plain estimator, exactly: a sum over how many η are 2."""
    (low, high), (_, p) = Enumerated.VALUES, Enumerated.CHANCES
    means = [(math.comb(m, k) * p**k * (1 - p) ** (m - k), (high * k + low * (m - k)) / m) for k in range(m + 1)]
    return math.fsum(chance * 2 * X * mean * math.tanh(mean * X**2) for chance, mean in means)


def bias(name: str, m: int) -> float:
    return sum(c * expected_gradient(m // 2**level) for level, c in enumerate(LEVELS[name].coefficients)) - TRUTH


def by_estimator(name: str, m: int) -> float:
    """Return the expectation of an estimator's gradient over all 2^m possible batches."""
    values, chances = zip(
        *(
            (torch.tensor([Enumerated.VALUES[i] for i in which]), math.prod(Enumerated.CHANCES[i] for i in which))
            for which in product((0, 1), repeat=m)
        ),
        strict=True,
    )
    x = torch.tensor(X, dtype=torch.float64, requires_grad=True)
    batch = Batch(torch.zeros(len(values)), torch.stack(values).double())
    losses = ESTIMATORS[name](Enumerated(), x, batch)
    (gradient,) = torch.autograd.grad(losses @ torch.tensor(chances, dtype=torch.float64), x)
    return float(gradient)


@pytest.mark.parametrize("name", BY_LEVELS)
def test_the_levels_are_those_of_the_estimator(name):
    assert by_estimator(name, 4) == pytest.approx(TRUTH + bias(name, 4), abs=1e-12)
    assert abs(bias(name, 4)) > 1e-4  # a control: there is something to agree about


def test_with_an_independent_jacobian_only_the_slope_of_f_is_biased():
    """E J E D, where D extrapolates ∇f from m/2 and m/4 samples."""

    def slope(m):
        (low, high), (_, p) = Enumerated.VALUES, Enumerated.CHANCES
        return sum(
            math.comb(m, k) * p**k * (1 - p) ** (m - k) * math.tanh((high * k + low * (m - k)) / m * X**2)
            for k in range(m + 1)
        )

    expected = 2 * X * MEAN * (2 * slope(4) - slope(2))
    assert by_estimator("independent_jacobian", 8) == pytest.approx(expected, abs=1e-12)


def derivatives() -> list[float]:
    """Return f′, f″, … f⁽⁵⁾ of log cosh at the true inner mean: polynomials in t = tanh."""
    t = math.tanh(MEAN * X**2)
    s = 1 - t**2
    return [t, s, -2 * t * s, s * (6 * t**2 - 2), s * (16 * t - 24 * t**3)]


def test_the_leading_terms_of_the_bias_are_those_of_the_expansion():
    """m · bias → a₁, and m² · bias of the extrapolated estimator → −2 a₂; its third moments are not 0."""
    _, f2, f3, f4, f5 = derivatives()
    _, _, second, third = ETA_MOMENTS
    jacobian, sigma, skew = 2 * X * MEAN, X**4 * second, X**6 * third  # of Y = (η − E η) x²
    cross, cross3 = 2 * X**3 * second, 2 * X**5 * third  # E[WY] and E[WY²] with W = 2 (η − E η) x
    first = jacobian * f3 * sigma / 2 + f2 * cross
    assert 512 * bias("plain", 512) == pytest.approx(first, rel=2e-3)
    next_one = jacobian * (f4 * skew / 6 + f5 * 3 * sigma**2 / 24) + f3 * cross3 / 2 + f4 * 3 * cross * sigma / 6
    assert 512**2 * bias("extrapolated", 512) == pytest.approx(-2 * next_one, rel=2e-2)


@pytest.mark.parametrize("name", BY_LEVELS)
def test_the_bias_falls_with_its_order_and_no_faster(name):
    order = ESTIMATORS[name].bias_order
    assert math.log2(bias(name, 128) / bias(name, 256)) == pytest.approx(order, abs=0.15)


def test_the_constant_of_the_plain_estimator_holds_for_every_m():
    """C₁ = ½ L_g M σ_g² + S_f σ_J σ_g, where M bounds f‴ and σ_J² is the variance of ∇g; here S_f = 1."""
    sigma, spread = X**2 * ETA_MOMENTS[2] ** 0.5, 2 * X * ETA_MOMENTS[2] ** 0.5
    stated = 0.5 * 2 * X * MEAN * 4 / (3 * math.sqrt(3)) * sigma**2 + spread * sigma
    found = [m * abs(bias("plain", m)) for m in (1, 2, 3, 5, 8, 16, 64, 256)]
    assert max(found) <= stated
    assert max(found) > 0.2 * stated


# ------------------------------------------------------------------------------------------- the term


@pytest.mark.parametrize("name", LEVELS)
def test_levels_fit_the_estimator(name):
    levels, estimator = LEVELS[name], ESTIMATORS[name]
    order = len(levels.coefficients)
    assert estimator.bias_order == order
    assert sum(levels.coefficients) == pytest.approx(1)
    for k in range(1, order):  # the terms a_k / mᵏ vanish
        assert sum(c * 2 ** (level * k) for level, c in enumerate(levels.coefficients)) == pytest.approx(0)
    estimator.check(3 * levels.multiple)
    for m in range(1, levels.multiple):
        with pytest.raises(InvalidValue):
            estimator.check(m)


positive = st.floats(0.1, 4)


@settings(max_examples=5)
@given(c=st.builds(Constants, positive, positive, st.just(0.0), positive, st.just(0.0) | positive, positive))
@pytest.mark.parametrize("method", THEOREMS)
def test_without_an_estimator_the_term_is_that_of_the_paper(method, c):
    clients = 1 if method in SINGLE_MACHINE else 3
    factor = THEOREMS[method].bias_factor
    setting = prescribe(method, c, clients, epsilon=0.3)
    assert setting.inner_batch == max(1, math.ceil(2 * factor * c.bias / 0.3**2))
    assert bound(setting, c)["bias"] == pytest.approx(factor * c.bias / setting.inner_batch)
    assert prescribe(method, c, clients, epsilon=0.3, bias=any_f(c)) == setting
    assert any_f(c).amplify(c, 1) == c
    steps = prescribe(method, c, clients, steps=500)
    rest = sum(THEOREMS[method].terms(c, steps).values())
    assert steps.inner_batch == max(1, math.ceil(factor * c.bias / rest))


@given(
    order=st.integers(1, 3),
    constant=st.floats(0, 1e4),
    factor=st.floats(1, 8),
    most=st.floats(1e-6, 10),
    data=st.data(),
)
def test_m_is_the_least_that_suffices(order, constant, factor, most, data):
    levels = data.draw(st.sampled_from(list(LEVELS.values())))
    term = BiasTerm("some", order, constant, levels)
    m = term.inner_batch(factor, most)
    assert m % levels.multiple == 0
    assert factor * term.squared(m) <= most * (1 + 1e-9)
    if m > levels.multiple:
        assert factor * term.squared(m - levels.multiple) > most * (1 - 1e-9)


def test_no_m_suffices_for_nothing():
    assert BiasTerm("some", 2, 1.0).inner_batch(2, 0.0) == math.inf
    assert BiasTerm("some", 0.5, 1e100).inner_batch(2, 1e-200) == math.inf


@pytest.mark.parametrize("name", BY_LEVELS)
@pytest.mark.parametrize("method", FEDERATED)
def test_samples_and_rounds_grow_as_the_order_says(method, name):
    """Compare ε and ε/32, where rounding hardly matters."""
    bias = smooth_f(name, replace(C, smooth_bias={name: 1e10}))
    coarse, fine = (prescribe(method, C, 2, epsilon=epsilon, bias=bias) for epsilon in (0.4, 0.4 / 32))
    theorem = THEOREMS[method]
    assert math.log(fine.samples / coarse.samples, 32) == pytest.approx(theorem.samples_exponent(bias.order), abs=0.1)
    assert math.log(fine.rounds / coarse.rounds, 32) == pytest.approx(theorem.exponents[1], abs=0.1)


def test_the_exponents_are_those_of_the_documentation():
    exponents = {m: [round(THEOREMS[m].samples_exponent(r), 2) for r in (0.5, 1, 2, 3)] for m in FEDERATED}
    assert exponents == {
        "FCSG": [6, 5, 4.5, 4.33],
        "FCSG-M": [6, 5, 4.5, 4.33],
        "Acc-FCSG-M": [5, 4, 3.5, 3.33],
    }


def test_estimates_are_steeper_by_the_sum_of_the_coefficients_and_noisier_the_fewer_samples_they_have():
    assert [LEVELS[name].steepness for name in BY_LEVELS] == pytest.approx([1, 3, 5])
    term = smooth_f("extrapolated", C)
    noise = 1 + 3**0.25 * C.outer_smoothness * C.inner_noise / (C.outer_slope * 4)
    amplified = term.amplify(C, 16)
    assert amplified.smoothness == pytest.approx(3 * C.smoothness)
    assert amplified.variance == pytest.approx(noise**2 * C.variance)
    assert term.amplify(C, math.inf).variance == pytest.approx(C.variance)
    wild = replace(C, inner_noise=1e6)
    assert [LEVELS[name].noise(wild, 4) for name in BY_LEVELS] == pytest.approx([1, 3, 5])
    setting = replace(prescribe("FCSG", C, 2, epsilon=0.5, bias=term), inner_batch=16)
    assert setting.learning_rate <= 1 / (6 * setting.local_steps * 3 * C.smoothness)
    found = bound(setting, C, term)["noise"]
    assert found == pytest.approx(2 * setting.learning_rate * 3 * C.smoothness * noise**2 * C.variance / 2)


def known_problems():
    quadratic = NestedQuadratic(1, noise=1.5)
    logistic = InvariantLogistic(dimension=2, noise=3.0, dtype=torch.float64)
    return {"quadratic": (quadratic, quadratic.centres(1)), "logistic": (logistic, logistic.clients(1))}


@pytest.mark.parametrize("name", LEVELS)
@pytest.mark.parametrize("problem", known_problems())
def test_estimates_are_no_larger_and_no_steeper_than_stated(problem, name):
    """From samples: E‖H‖², and the difference of two estimates on the same samples, which variance reduction needs."""
    problem, (data,) = known_problems()[problem]
    x = problem.optimum([data]) + 1 if isinstance(problem, NestedQuadratic) else torch.tensor([1.2, -1.6]).double()
    constants, estimator, draws = problem.constants(x, [data], 2.0), ESTIMATORS[name], 4000
    term = BiasTerm(name, 1, 1.0, LEVELS[name])
    for m in (4, 16):
        batch = estimator.draw(problem, data, stream(0, 0, m), draws, 1, m).batch
        oracle, near = Cohort(problem, 1, estimator), x + 0.1
        found = oracle.grad(x.expand(1, draws, -1), batch)[0]
        apart = (found - oracle.grad(near.expand(1, draws, -1), batch)[0]).square().sum(-1).mean().sqrt()
        stated = term.amplify(constants, m)
        assert found.square().sum(-1).mean() <= stated.variance
        assert apart <= stated.smoothness * (x - near).norm()


def test_an_unknown_constant_is_asked_for():
    with pytest.raises(FedcsoError, match=r"C of the estimator independent_jacobian is not known.*r = 2"):
        smooth_f("independent_jacobian", C)
    assert smooth_f("independent_jacobian", C, 7.0).constant == 7.0


@pytest.mark.parametrize(("name", "says"), [("mean_outside", "no number of inner"), ("rt_mlmc", "only orders are")])
def test_estimators_without_a_term_are_refused(name, says):
    with pytest.raises(InvalidValue, match=says):
        smooth_f(name, C, 1.0)


# ------------------------------------------------------------------------ constants of problems, and runs


@pytest.mark.parametrize("name", BY_LEVELS)
@pytest.mark.parametrize("noise", [0.5, 2.0])
def test_the_constants_of_the_logistic_regression_bound_its_exact_bias(name, noise):
    problem = InvariantLogistic(dimension=2, noise=noise, dtype=torch.float64)
    clients = problem.clients(2, unlike_truth=1.0, unlike_points=0.3)
    stated = smooth_f(name, problem.constants(torch.zeros(2), clients, 2.0))
    shares = []
    for m in (4, 16, 64):
        for x in ([2.0, 0.0], [-1.2, 1.6], [0.3, -0.2]):
            found = sum(
                c * problem.bias(torch.tensor(x), clients, m / 2**level)
                for level, c in enumerate(LEVELS[name].coefficients)
            )
            shares.append(float(found.norm()) / stated.squared(m) ** 0.5)
    assert max(shares) <= 1
    assert max(shares) > 0.002  # and they are not absurdly large


@pytest.mark.parametrize("name", ["extrapolated", "independent_jacobian"])
@pytest.mark.parametrize("method", FEDERATED)
def test_the_bound_with_an_estimator_is_never_violated(method, name):
    problem = Quadratic(1, noise=0.5)
    clients = problem.centres(2)
    constants = problem.constants(torch.zeros(1, dtype=torch.float64), clients)
    term = smooth_f(name, constants)
    setting = prescribe(method, constants, 2, steps=60, bias=term)
    assert bound(setting, constants, term)["bias"] == 0  # the estimator has no bias here, and needs no more samples
    assert setting.inner_batch == LEVELS[name].multiple
    task, estimator = Task(problem, clients), ESTIMATORS[name]
    ((first, second),) = run_grid([build_algorithm(setting)], task, setting.plan(), [0, 1], estimator=estimator)
    for row, *means in zip(first.rows[1:], running_means(first)[:-1], running_means(second)[:-1], strict=True):
        most = sum(bound(replace(setting, steps=int(row["step"])), constants, term).values())
        assert max(means) <= most
