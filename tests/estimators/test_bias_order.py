"""On every problem with a known gradient, the bias of every estimator falls with m as fast as the estimator claims.

Expectations are exact (`expectations.py`), so slopes are not blurred by noise. What a polynomial f does to the bias,
the problem states as `outer_degree`: if f is linear, no estimator is biased; if f is quadratic, the bias of plain ends
with its 1/m term, and an estimator that removes this term has none.
"""

import importlib
import inspect
import math
import pkgutil
from itertools import pairwise

import pytest

from fedcso import problems
from fedcso.core.problem import Problem
from fedcso.core.tree import map_leaves
from fedcso.estimators import ESTIMATORS
from tests.estimators.expectations import Known, expected_gradient, true_gradient, vector
from tests.estimators.known_problems import KNOWN

SIZES = (16, 32)
ZERO = 1e-11
"""Biases below this share of ‖∇F‖ are rounding errors; true ones are much larger at these sizes."""

every_problem = pytest.mark.parametrize("name", KNOWN)


def biases(known: Known, estimator: str) -> list[float]:
    """Return ‖E∇F̂ − ∇F‖ / ‖∇F‖ at both sizes."""
    truth = true_gradient(known)
    found = [expected_gradient(estimator, ESTIMATORS[estimator], known, m) for m in SIZES]
    return [float((one - truth).norm() / truth.norm()) for one in found]


def has_none(problem: Problem, order: int) -> bool:
    """Return whether no bias of an estimator of this order is left, because f is linear or quadratic."""
    return problem.outer_degree == 1 or (problem.outer_degree == 2 and order > 1)


@every_problem
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_the_bias_falls_with_the_claimed_order(name, estimator):
    known, order = KNOWN[name](), ESTIMATORS[estimator].bias_order
    small, large = biases(known, estimator)
    if has_none(known.problem, order):
        assert max(small, large) < ZERO
        return
    assert min(small, large) > 100 * ZERO
    slope = math.log(small / large) / math.log(SIZES[1] / SIZES[0])
    assert slope == pytest.approx(order, abs=0.3)


@every_problem
def test_the_listed_samples_are_those_of_the_problem(name):
    known = KNOWN[name]()
    truth, exact = true_gradient(known), vector(known.exact)
    assert float((truth - exact).norm()) <= known.agrees_to * float(exact.norm())


def test_every_problem_with_a_known_gradient_is_here():
    modules = [
        importlib.import_module(f"{problems.__name__}.{one.name}") for one in pkgutil.iter_modules(problems.__path__)
    ]
    kinds = {
        kind
        for module in modules
        for _, kind in inspect.getmembers(module, inspect.isclass)
        if issubclass(kind, Problem) and kind.__module__ == module.__name__ and kind.exact is not None
    }
    here = {known.of or type(known.problem) for known in (make() for make in KNOWN.values())}
    bases = {base for kind in here for base in kind.__mro__[1:]}
    assert kinds - bases == here - bases


@every_problem
def test_the_stated_degree_is_that_of_f(name):
    """Differences of order k + 1 along a line vanish if f is a polynomial of degree k, and no earlier ones."""
    known = KNOWN[name]()
    eta, _ = known.block(1)
    inner = known.problem.inner(known.x, known.xi, map_leaves(lambda leaf: leaf[:, 0], eta))
    points = [map_leaves(lambda leaf, k=k: leaf * (1 + 0.1 * k), inner) for k in range(4)]
    values = [known.problem.outer(point, known.xi).sum() for point in points]
    first = [b - a for a, b in pairwise(values)]
    second = [b - a for a, b in pairwise(first)]
    third = second[1] - second[0]
    degree = known.problem.outer_degree
    scale = abs(float(first[0]))
    assert (abs(float(second[0])) > 1e-6 * scale) == (degree > 1)
    assert (abs(float(third)) > 1e-6 * scale) == (degree > 2)
