"""Constants estimated from samples, compared with problems for which they are known."""

import math
from dataclasses import dataclass, replace

import pytest
import torch

from fedcso.core.constants import SYMBOLS
from fedcso.core.errors import InvalidValue
from fedcso.core.streams import stream
from fedcso.problems import NestedQuadratic
from fedcso.theory.estimate import _largest_singular_value, estimate, find_constants
from tests.helpers import CASES, FINITE, nested_quadratic

MATRIX = torch.tensor([[3.0, 1.0], [0.0, 2.0], [1.0, 1.0]], dtype=torch.float64)
LARGEST = float(torch.linalg.svdvals(MATRIX)[0])


def test_the_largest_singular_value_is_found():
    x = torch.ones(2, dtype=torch.float64)
    assert math.isclose(_largest_singular_value(lambda p: MATRIX @ p, [x], stream(0, 0, 0)), LARGEST, rel_tol=1e-3)


def test_the_largest_singular_value_of_the_difference_of_two_jacobians_is_found():
    """g(x) = A x² / 2 coordinate by coordinate has the Jacobian A diag(x)."""
    x, y = torch.tensor([1.0, 2.0], dtype=torch.float64), torch.tensor([0.0, 1.0], dtype=torch.float64)
    found = _largest_singular_value(lambda p: MATRIX @ (p * p / 2), [x, y], stream(0, 0, 0))
    assert math.isclose(found, LARGEST, rel_tol=1e-3)


def test_the_largest_singular_value_of_a_constant_map_is_zero():
    x = torch.ones(2, dtype=torch.float64)
    assert _largest_singular_value(lambda p: p * 0, [x], stream(0, 0, 0)) == 0
    assert _largest_singular_value(lambda p: MATRIX @ p, [x, 2 * x], stream(0, 0, 0)) == 0


@dataclass(frozen=True)
class Curved(NestedQuadratic):
    """A problem with g = η ∘ x²/2, for which S_g is known, that does not provide its constants."""

    def inner(self, x, xi, eta):
        return eta.mean(-2) * (x * x / 2).unsqueeze(-2)

    def constants(self, x, clients, radius=None):
        return None


def test_every_constant_is_estimated_correctly_where_it_is_known():
    """In one dimension with tiny s and κ, η ~ N(1, τ²) and ξ = c, so all expectations are short formulas."""
    problem = Curved(dimension=1, coupling=0.0, spread=1e-9, noise=0.5)
    x, radius, c = torch.tensor([2.0], dtype=torch.float64), 1e-6, torch.ones(1, dtype=torch.float64)
    constants, widths = estimate(problem, x, [c], radius, samples=400)
    g_noise = 0.5 * 2.0**2 / 2
    residual = 2.0**2 / 2 - 1
    expected = {
        "outer_smoothness": 1.0,
        "outer_slope": math.sqrt(residual**2 + g_noise**2 / 16),  # ĝ is the mean of 16
        "inner_smoothness": math.sqrt(2 / math.pi) * 0.5 * math.exp(-2) + math.erf(math.sqrt(2)),  # E|η|
        "inner_slope": 2.0 * math.sqrt(1 + 0.5**2),
        "inner_noise": g_noise,
        "gap": 0.5 * (residual**2 + g_noise**2 / 16),
    }
    for name, value in expected.items():
        assert abs(getattr(constants, name) - value) <= 2 * widths[name] + 1e-6, name
        assert widths[name] < 0.15 * value
    assert widths["inner_slope"] > 0


def test_exact_constants_are_not_estimated():
    case = nested_quadratic()
    x = case.problem.init(stream(0, 0, 0))
    found = find_constants(case.problem, x, case.clients)
    assert found.constants == case.problem.constants(x, case.clients)
    assert set(found.half_widths.values()) == {0.0}


@pytest.mark.parametrize("name", ["classification", "auprc", "cross_entropy"])
def test_any_problem_has_estimates(name):
    case = (CASES | FINITE)[name]
    constants, widths = find_constants(
        case.problem, case.problem.init(stream(0, 0, 0)), case.clients, lowest=-2.0, samples=12
    )
    assert widths.keys() == SYMBOLS.keys()
    assert constants.smoothness > 0
    if name != "auprc":  # g is the identity: no noise, no curvature
        assert (constants.inner_noise, constants.inner_smoothness) == (0.0, 0.0)
        assert constants.inner_slope == pytest.approx(1.0)


def test_more_samples_make_narrower_intervals():
    problem, x = Curved(dimension=2), torch.ones(2, dtype=torch.float64)
    few, many = (estimate(problem, x, problem.centres(2), samples=n).half_widths for n in (10, 150))
    assert many["inner_noise"] < few["inner_noise"]
    assert many["gap"] < few["gap"]


def test_the_same_seed_gives_the_same_estimates_and_another_does_not():
    problem, x = Curved(dimension=2), torch.ones(2, dtype=torch.float64)
    once, again, other = (estimate(problem, x, problem.centres(2), samples=5, seed=seed) for seed in (1, 1, 2))
    assert once == again != other


def test_a_lower_bound_above_f_is_refused():
    problem = Curved(dimension=1)
    with pytest.raises(InvalidValue, match=r"lowest = 1000000.0 .*below F\(x_0\)"):
        estimate(problem, torch.ones(1, dtype=torch.float64), problem.centres(1), lowest=1e6, samples=5)


@pytest.mark.parametrize("options", [{"radius": 0.0}, {"samples": 1}, {"inner_batch": 1}])
def test_sizes_are_checked(options):
    problem = replace(Curved(dimension=1))
    (name,) = options
    with pytest.raises(InvalidValue, match=name):
        estimate(problem, torch.ones(1, dtype=torch.float64), problem.centres(1), **options)
