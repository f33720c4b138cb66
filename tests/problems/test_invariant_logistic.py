"""Invariant logistic regression: its exact F and ∇F compared with sampling, quadrature and finite differences."""

import math
import sys
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from scipy import integrate

from fedcso.core.errors import InvalidValue
from fedcso.core.streams import stream
from fedcso.problems import InvariantLogistic
from fedcso.problems.invariant_logistic import Source, measure_accuracy
from fedcso.problems.logistic_integral import bound_gradient, largest_derivative, logistic_part
from tests.helpers import assert_close, finite_difference, standard_error

PROBLEM = InvariantLogistic(dimension=3, penalty=0.01, dtype=torch.float64)
SOURCES = {
    "alike": PROBLEM.clients(1),
    "unlike": PROBLEM.clients(4, unlike_truth=1.0, unlike_points=0.5),
}
X = torch.tensor([0.7, -1.1, 0.4], dtype=torch.float64)

every_source = pytest.mark.parametrize("sources", SOURCES.values(), ids=SOURCES)


def exact(x, sources=SOURCES["unlike"], weights=None, problem=PROBLEM):
    return problem.exact(x, sources, weights or [1.0] * len(sources))


# -------------------------------------------------------------------------------- exact F and ∇F


@every_source
@pytest.mark.parametrize("scale", [0.1, 1.0, 10.0])
def test_exact_agrees_with_sampling(sources, scale):
    x, draws = scale * X, 200_000
    for n, source in enumerate(sources):
        a, label = PROBLEM.sample_outer(source, stream(0, n, 0), (draws,))
        margin = label * (a @ x)
        values = F.softplus(-margin) + PROBLEM.regulariser(x)
        point = x.clone().requires_grad_()
        (penalty_slope,) = torch.autograd.grad(PROBLEM.regulariser(point), point)
        gradients = -(label * torch.sigmoid(-margin)).unsqueeze(1) * a + penalty_slope
        value, gradient = exact(x, [source])
        assert abs(values.mean() - value) < 4 * standard_error(values)
        assert ((gradients.mean(0) - gradient).abs() < 4 * standard_error(gradients)).all()


@every_source
@pytest.mark.parametrize("scale", [0.1, 1.0, 10.0])
def test_exact_gradient_is_that_of_the_exact_value(sources, scale):
    x = scale * X
    differences = finite_difference(lambda point: exact(point, sources)[0], x)
    assert_close(exact(x, sources)[1], differences, tolerance=1e-8)


LINE = InvariantLogistic(dimension=1, penalty=0.01, dtype=torch.float64)


def on_the_line(x: float, truth: float, mean: float, scale: float) -> tuple[float, float]:
    """Return F and F′ in one dimension, integrated over a; the label jumps at a = 0."""

    def expectation(h) -> float:
        def integrand(a: float) -> float:
            density = math.exp(-((a - mean) ** 2) / (2 * scale**2)) / (scale * math.sqrt(2 * math.pi))
            return h(a, math.copysign(1.0, a * truth)) * density

        # Borders where the label jumps and where the loss bends, at distances of order 1/x from 0.
        bends = [sign * k / max(abs(x), 1e-3) for sign in (-1, 1) for k in (3, 30, 300)]
        ends = [mean - 12 * scale, mean + 12 * scale]
        borders = sorted({*ends, *(p for p in (0.0, *bends) if ends[0] < p < ends[1])})
        pieces = [
            integrate.quad(integrand, low, high, epsabs=1e-14, epsrel=1e-12, limit=200)[0]
            for low, high in pairwise(borders)
        ]
        return math.fsum(pieces)

    square = LINE.sharpness * x**2
    value = expectation(lambda a, label: np.logaddexp(0, -label * a * x))
    slope = expectation(lambda a, label: -label * a * math.exp(-np.logaddexp(0, label * a * x)))
    return (
        value + LINE.penalty * square / (1 + square),
        slope + LINE.penalty * 2 * LINE.sharpness * x / (1 + square) ** 2,
    )


@pytest.mark.parametrize("x", [0.0, 1e-8, -1e-3, 0.5, -3.0, 50.0, 1e4, -1e6])
@pytest.mark.parametrize(("truth", "mean", "scale"), [(1.0, 0.0, 1.0), (-0.7, 0.6, 1.8), (2.0, -3.0, 0.4)])
def test_exact_agrees_with_quadrature_of_the_definition_in_one_dimension(x, truth, mean, scale):
    """The tolerance grows with ‖x‖, because F is a difference of two numbers that do."""
    source = Source(*(torch.tensor([value], dtype=torch.float64) for value in (truth, mean, scale)))
    value, gradient = exact(torch.tensor([x], dtype=torch.float64), [source], problem=LINE)
    expected_value, expected_slope = on_the_line(x, truth, mean, scale)
    tolerance = 1e-12 + 4 * sys.float_info.epsilon * abs(x)
    assert value.item() == pytest.approx(expected_value, rel=1e-11, abs=tolerance)
    assert gradient.item() == pytest.approx(expected_slope, rel=1e-11, abs=tolerance)


@pytest.mark.parametrize("scale", [0.1, 1.0, 5.0])
def test_exact_value_agrees_with_quadrature_over_margin_and_label_in_three_dimensions(scale):
    """(aᵀx, aᵀx*) is a pair of correlated normals; the label is the sign of the second."""
    (source,) = SOURCES["unlike"][:1]
    x = scale * X
    variance = source.scale**2
    margin, truth = float(x @ source.mean), float(source.truth @ source.mean)
    width, truth_width = (float((variance * v * v).sum().sqrt()) for v in (x, source.truth))
    correlation = float((variance * x * source.truth).sum()) / (width * truth_width)

    def integrand(r: float, s: float) -> float:
        label = math.copysign(1.0, truth + truth_width * s)
        v = margin + width * (correlation * s + math.sqrt(1 - correlation**2) * r)
        return float(np.logaddexp(0, -label * v)) * math.exp(-(r * r + s * s) / 2) / (2 * math.pi)

    jump = -truth / truth_width
    halves = [
        integrate.dblquad(integrand, low, high, -9, 9, epsabs=1e-10, epsrel=1e-10)[0]
        for low, high in [(-9, jump), (jump, 9)]
    ]
    value, _ = exact(x, [source])
    assert float(value - PROBLEM.regulariser(x)) == pytest.approx(sum(halves), abs=1e-9)


@every_source
def test_at_zero_all_is_known(sources):
    """F(0) = log 2, and the slope there is −½ E[b a]."""
    value, gradient = exact(torch.zeros(3, dtype=torch.float64), sources)
    assert value.item() == pytest.approx(math.log(2), abs=1e-14)
    draws = 200_000
    parts = [PROBLEM.sample_outer(source, stream(0, n, 0), (draws,)) for n, source in enumerate(sources)]
    slopes = torch.stack([-0.5 * label.unsqueeze(1) * a for a, label in parts]).mean(0)
    assert ((slopes.mean(0) - gradient).abs() < 4 * standard_error(slopes)).all()


@pytest.mark.parametrize("size", [0.0, 1e-200, 1e-12, 1e12, 1e100])
def test_exact_is_finite_at_any_size(size):
    value, gradient = exact(size * X)
    assert value.isfinite()
    assert gradient.isfinite().all()


def test_exact_accepts_leading_axes():
    points = torch.stack([X, 2 * X, 0 * X, -X]).reshape(2, 2, 3)
    values, gradients = exact(points)
    assert values.shape == (2, 2)
    for i in range(2):
        for j in range(2):
            assert_close((values[i, j], gradients[i, j]), exact(points[i, j]))


def test_exact_counts_clients_by_their_weights():
    sources, weights = SOURCES["unlike"], [1.0, 2.0, 3.0, 4.0]
    alone = [exact(X, [source]) for source in sources]
    value, gradient = exact(X, sources, weights)
    assert_close(value, sum(w * v for w, (v, _) in zip(weights, alone, strict=True)) / sum(weights))
    assert_close(gradient, sum(w * g for w, (_, g) in zip(weights, alone, strict=True)) / sum(weights))


def test_exact_is_in_double_precision_for_a_model_in_single_precision():
    value, gradient = exact(X.float())
    assert value.dtype == gradient.dtype == torch.float64
    assert_close((value, gradient), exact(X.float().double()), tolerance=0.0)


# --------------------------------------------------------------------------------------- sampling


def test_outer_samples_have_their_source_s_mean_and_scale():
    (source,) = SOURCES["unlike"][:1]
    a, label = PROBLEM.sample_outer(source, stream(0, 0, 0), (100_000,))
    squares = (a - source.mean) ** 2
    assert ((a.mean(0) - source.mean).abs() < 4 * standard_error(a)).all()
    assert ((squares.mean(0) - source.scale**2).abs() < 4 * standard_error(squares)).all()
    assert torch.equal(label, torch.sign(a @ source.truth))


@pytest.mark.parametrize("draw_mean", [False, True], ids=["literal", "at_once"])
def test_the_mean_measurement_has_the_same_distribution_however_it_is_drawn(draw_mean):
    """η̄ ~ N(a, σ₂²/m · I), compared by mean and covariance."""
    problem = InvariantLogistic(dimension=3, noise=1.5, draw_mean=draw_mean, dtype=torch.float64)
    m, draws = 4, 100_000
    one = PROBLEM.sample_outer(SOURCES["alike"][0], stream(0, 0, 0), (1,))
    xi = type(one)(*(leaf.expand(draws, *leaf.shape[1:]) for leaf in one))
    error = problem.sample_inner(SOURCES["alike"][0], stream(1, 0, 0), xi, m).mean(1) - xi.a
    assert (error.mean(0).abs() < 4 * standard_error(error)).all()
    products = error.unsqueeze(2) * error.unsqueeze(1)
    covariance = problem.noise**2 / m * torch.eye(3, dtype=torch.float64)
    assert ((products.mean(0) - covariance).abs() < 4 * standard_error(products)).all()


def test_drawing_the_mean_draws_one_vector_whatever_m():
    problem = InvariantLogistic(dimension=3, draw_mean=True)
    xi = problem.sample_outer(problem.clients(1)[0], stream(0, 0, 0), (2, 5))
    assert problem.sample_inner(None, stream(0, 0, 0), xi, 1000).shape == (2, 5, 1, 3)


# ---------------------------------------------------------------------------------- clients and test


def test_clients_are_alike_as_in_the_paper_unless_asked_otherwise():
    first, *others = PROBLEM.clients(5)
    assert first.truth.norm().item() == pytest.approx(1)
    assert first.mean.tolist() == [0] * 3
    assert first.scale.tolist() == [PROBLEM.signal] * 3
    for other in others:
        assert_close(other, first, tolerance=0.0)


def test_clients_can_be_unlike_in_truth_or_in_points():
    by_truth, by_points = PROBLEM.clients(2, unlike_truth=1.0), PROBLEM.clients(2, unlike_points=1.0)
    assert not torch.equal(by_truth[0].truth, by_truth[1].truth)
    assert_close(by_truth[0]._replace(truth=X), by_truth[1]._replace(truth=X), tolerance=0.0)
    assert not torch.equal(by_points[0].mean, by_points[1].mean)
    assert not torch.equal(by_points[0].scale, by_points[1].scale)
    assert torch.equal(by_points[0].truth, by_points[1].truth)


def test_clients_belong_to_the_data_seed():
    assert_close(list(PROBLEM.clients(2, seed=1)), list(PROBLEM.clients(2, seed=1)), tolerance=0.0)
    assert not torch.equal(PROBLEM.clients(1, seed=1)[0].truth, PROBLEM.clients(1, seed=2)[0].truth)


@pytest.mark.parametrize("number", [3, 10, 11])
def test_test_points_come_from_all_clients_alike_with_their_labels(number):
    sources = SOURCES["unlike"]
    a, label = PROBLEM.test_points(sources, number)
    assert len(a) == len(label) == number
    shares = [len(range(n, number, len(sources))) for n in range(len(sources))]
    parts = zip(a.split(shares), label.split(shares), sources, strict=True)
    for points, labels, source in parts:
        assert torch.equal(labels, torch.sign(points @ source.truth))


def test_accuracy_is_full_at_the_truth_and_none_against_it():
    (source,) = SOURCES["alike"]
    test = PROBLEM.test_points([source], 200)
    both = torch.stack([source.truth, -source.truth])
    assert measure_accuracy(both, test)["accuracy"].tolist() == [1, 0]


@pytest.mark.parametrize(
    ("field", "value", "allowed"),
    [
        ("dimension", 0, "a whole number, at least 1"),
        ("signal", 0.0, "a finite number above 0"),
        ("noise", -1.0, "a finite number above 0"),
        ("sharpness", math.inf, "a finite number above 0"),
        ("penalty", -0.1, "a finite number, at least 0"),
    ],
)
def test_settings_are_checked(field, value, allowed):
    with pytest.raises(InvalidValue) as caught:
        InvariantLogistic(**{field: value})
    assert str(caught.value) == f"{field} = {value!r} must be {allowed}"


# --------------------------------------------------------------------------------------- the exact bias


@every_source
@pytest.mark.parametrize("m", [1, 4])
def test_the_exact_bias_agrees_with_sampling(sources, m):
    problem, draws = replace(PROBLEM, noise=3.0, draw_mean=True), 200_000
    bias, errors, means = problem.bias(X, sources, m), [], []
    for n, source in enumerate(sources):
        xi = problem.sample_outer(source, stream(0, n, m), (draws,))
        eta = problem.sample_inner(source, stream(1, n, m), xi, m).squeeze(1)
        gradients = -(xi.label * torch.sigmoid(-xi.label * (eta @ X))).unsqueeze(1) * eta
        point = X.clone().requires_grad_()
        (penalty_slope,) = torch.autograd.grad(problem.regulariser(point), point)
        means.append(gradients.mean(0) + penalty_slope - exact(X, [source], problem=problem)[1])
        errors.append(standard_error(gradients).square())
    error = torch.stack(errors).mean(0).sqrt() / len(sources) ** 0.5
    assert ((torch.stack(means).mean(0) - bias).abs() < 4 * error).all()
    assert (bias.abs() > 8 * error).any()


@pytest.mark.parametrize(
    ("order", "largest"), [(1, 1), (2, 1 / 4), (3, 1 / (6 * math.sqrt(3))), (4, 1 / 8), (6, 1 / 4)]
)
def test_the_largest_derivatives_of_the_logistic_loss(order, largest):
    assert largest_derivative(order) == pytest.approx(largest)


def test_the_bound_of_the_derivative_in_t_holds():
    """∇_x G⁽ᵏ⁾ by finite differences of exact values in t, for k = 1 and 2."""
    source, step = Source(*(part.double() for part in SOURCES["unlike"][0])), 0.01
    first, middle, last = (logistic_part(X, *source, t)[1] for t in (0.5 - step, 0.5, 0.5 + step))
    length = float((source.scale**2 + source.mean**2).sum() + 0.5 + step) ** 0.5
    radius = float(X.norm())
    slopes = [(last - first) / (2 * step), (last - 2 * middle + first) / step**2]
    for k, slope in enumerate(slopes, start=1):
        assert 0.01 * bound_gradient(k, radius, length) < slope.norm() <= bound_gradient(k, radius, length)
