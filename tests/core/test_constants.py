"""The constants of Assumptions 1–3: what they imply, and that those of the built-in problems are right."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fedcso.core.constants import Constants
from fedcso.core.errors import InvalidValue
from fedcso.core.oracle import Cohort
from fedcso.core.streams import stream
from fedcso.estimators.plain import plain
from fedcso.problems import AUPRC, InvariantLogistic, NestedQuadratic
from tests.helpers import Case

FINE = {
    "outer_smoothness": 0.5,
    "outer_slope": 2.0,
    "inner_smoothness": 3.0,
    "inner_slope": 4.0,
    "inner_noise": 5.0,
    "gap": 6.0,
}


def test_smoothness_variance_and_bias_follow():
    constants = Constants(**FINE)
    assert constants.smoothness == 3 * 2 + 0.5 * 4**2
    assert constants.variance == (2 * 4) ** 2
    assert constants.bias == (4 * 0.5 * 5) ** 2


@pytest.mark.parametrize("value", [-1.0, float("nan"), float("inf"), True])
@pytest.mark.parametrize("name", FINE)
def test_what_no_constant_can_be_is_refused(name, value):
    with pytest.raises(InvalidValue, match=name):
        Constants(**FINE | {name: value})


def test_a_straight_f_and_g_have_nothing_to_go_by():
    with pytest.raises(InvalidValue, match="curved"):
        Constants(**FINE | {"outer_smoothness": 0.0, "inner_smoothness": 0.0})


# --------------------------------------------------------------------------- the built-in problems


def quadratic(dimension: int = 2) -> Case:
    problem = NestedQuadratic(dimension, noise=0.7)
    return Case(problem, problem.centres(3))


def logistic(unlike: float = 0.0) -> Case:
    problem = InvariantLogistic(dimension=3, noise=1.2, penalty=0.05, dtype=torch.float64)
    return Case(problem, problem.clients(3, unlike_truth=unlike, unlike_points=unlike))


KNOWN = {
    "quadratic": quadratic(),
    "quadratic in one dimension": quadratic(1),
    "logistic": logistic(),
    "unlike": logistic(0.5),
}
RADIUS = 2.0
every = pytest.mark.parametrize("case", KNOWN.values(), ids=KNOWN)


def centre(case: Case) -> torch.Tensor:
    """Return the centre of the ball on which the problem's constants hold."""
    if isinstance(case.problem, NestedQuadratic):
        return case.problem.optimum(case.clients)
    return torch.zeros(case.problem.dimension, dtype=torch.float64)


def in_the_ball(case: Case, seed: int) -> torch.Tensor:
    direction = torch.randn(case.problem.dimension, generator=stream(seed, 0, 0), dtype=torch.float64)
    return centre(case) + RADIUS * direction / direction.norm()


def exact_gradient(case: Case, x: torch.Tensor, client: int) -> torch.Tensor:
    return case.problem.exact(x, case.clients[client : client + 1], [1.0])[1]


@every
@settings(max_examples=20)
@given(seeds=st.tuples(st.integers(0, 10**6), st.integers(0, 10**6)), client=st.integers(0, 2))
def test_gradients_differ_by_no_more_than_the_smoothness_allows(case, seeds, client):
    x, y = (in_the_ball(case, seed) for seed in seeds)
    largest = case.problem.constants(x, case.clients, RADIUS).smoothness
    difference = exact_gradient(case, x, client) - exact_gradient(case, y, client)
    assert difference.norm() <= largest * (x - y).norm() * (1 + 1e-9)


@every
@pytest.mark.parametrize("m", [1, 4])
def test_estimates_vary_no_more_and_are_biased_no_more_than_stated(case, m):
    """This includes the squared difference of two estimates on the same samples, which variance reduction needs."""
    draws = 20_000
    for seed in range(4):
        x, near = in_the_ball(case, seed), in_the_ball(case, seed) + 0.1
        stated = case.problem.constants(x, case.clients, RADIUS)
        for client, data in enumerate(case.clients):
            batch = plain.draw(case.problem, data, stream(seed, client, m), draws, 1, m).batch
            oracle = Cohort(case.problem, 1, plain)
            gradients = oracle.grad(x.expand(1, draws, -1), batch)[0]
            error = 4 * gradients.std(0).norm() / draws**0.5
            assert gradients.square().sum(-1).mean() <= 1.1 * stated.variance
            bias = (gradients.mean(0) - exact_gradient(case, x, client)).norm()
            assert bias <= (stated.bias / m) ** 0.5 + error
            apart = gradients - oracle.grad(near.expand(1, draws, -1), batch)[0]
            assert apart.square().sum(-1).mean().sqrt() <= 1.05 * stated.smoothness * (x - near).norm()


@every
def test_the_ball_has_a_radius_by_default_and_larger_ones_have_larger_constants(case):
    x = in_the_ball(case, 0)
    usual, wide = case.problem.constants(x, case.clients), case.problem.constants(x, case.clients, 100 * RADIUS)
    assert usual.inner_noise < wide.inner_noise
    assert usual.outer_slope <= wide.outer_slope
    assert usual.gap == wide.gap > 0


def test_the_gap_of_the_quadratic_is_that_to_its_optimum():
    case = quadratic()
    x = in_the_ball(case, 1)
    weights = [1.0] * 3
    best = case.problem.exact(case.problem.optimum(case.clients), case.clients, weights)[0]
    gap = case.problem.constants(x, case.clients).gap
    assert gap == pytest.approx(float(case.problem.exact(x, case.clients, weights)[0] - best))


def test_a_problem_need_not_know_its_constants():
    assert AUPRC.constants is None
