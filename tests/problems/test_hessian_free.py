"""The Hessian-free step: exact values, derivatives by differences, also of many clients at once."""

import pytest
import torch
from torch.func import grad, vjp, vmap

from fedcso.problems.hessian_free import hessian_free_step
from tests.helpers import CLEARLY, assert_close, gap

RATE = 0.3
RNG = torch.Generator().manual_seed(0)
A = torch.randn(5, 3, generator=RNG, dtype=torch.float64)
X = {"w": torch.randn(3, generator=RNG, dtype=torch.float64)}
V = {"w": torch.randn(3, generator=RNG, dtype=torch.float64)}


def quadratic(x, support):
    return 0.5 * (support[0] @ x["w"]).square().mean()


def curved(x, support):
    return torch.log1p(torch.exp(support[0] @ x["w"])).mean()


def pulled_back(loss, difference, x=X, support=(A,), v=V):
    """Return the step and its derivative along v, by differences of this length or, without any, exactly."""

    def step(point):
        slope = grad(loss)
        if difference:
            return hessian_free_step(slope, point, support, RATE, difference)
        return {"w": point["w"] - RATE * slope(point, support)["w"]}

    value, pull_back = vjp(step, x)
    return value, pull_back(v)[0]


@pytest.mark.parametrize("difference", [1e-3, 1.0])
def test_it_is_exact_for_a_quadratic_loss(difference):
    assert_close(pulled_back(quadratic, difference), pulled_back(quadratic, 0))


def test_its_error_falls_with_the_square_of_the_difference():
    exact = pulled_back(curved, 0)[1]
    errors = [gap(pulled_back(curved, difference)[1], exact) for difference in (0.2, 0.1)]
    assert errors[0] > 1e-6
    assert 3.8 < errors[0] / errors[1] < 4.2


def test_it_differs_from_the_first_order():
    assert gap(pulled_back(curved, 1e-3)[1], V) > CLEARLY


@pytest.mark.parametrize("length", [1e-12, 1e12])
def test_the_length_of_the_slope_does_not_matter_in_single_precision(length):
    x, v, support = {"w": X["w"].float()}, {"w": length * V["w"].float()}, (A.float(),)
    found = pulled_back(curved, 1e-2, x, support, v)[1]["w"].double() / length
    assert_close(found, pulled_back(curved, 0)[1]["w"], tolerance=1e-4)


def test_a_slope_of_zero_stays_zero():
    zero = {"w": torch.zeros_like(X["w"])}
    assert_close(pulled_back(curved, 1e-3, v=zero)[1], zero, tolerance=0.0)


def test_many_clients_can_be_stacked():
    """Each has its own x, examples and slope, and its own length of the difference."""
    several = [{"w": k * X["w"]} for k in (1, 2, 3)]
    supports = [A, 2 * A, A - 1]

    def derivative(w, support, v):
        return pulled_back(curved, 1e-3, {"w": w}, (support,), {"w": v})[1]["w"]

    stacked = vmap(derivative)(
        torch.stack([x["w"] for x in several]), torch.stack(supports), torch.stack([k * V["w"] for k in (1, -1, 100)])
    )
    for k, (x, support, factor) in enumerate(zip(several, supports, (1, -1, 100), strict=True)):
        alone = pulled_back(curved, 1e-3, x, (support,), {"w": factor * V["w"]})[1]["w"]
        assert_close(stacked[k], alone)
