"""Sample average approximation against closed forms, and what it refuses."""

from dataclasses import replace

import pytest
import torch

from fedcso.core.errors import FedcsoError, InvalidValue
from fedcso.core.estimator import sample
from fedcso.core.oracle import Oracle
from fedcso.core.problem import split_steps
from fedcso.core.streams import AVERAGE, stream
from fedcso.core.task import Task
from fedcso.estimators.extrapolated import extrapolated
from fedcso.estimators.plain import plain
from fedcso.problems import NestedQuadratic
from fedcso.theory.saa import solve_saa
from tests.helpers import CASES, CLEARLY, SADDLES, assert_close, gap, invariant_logistic, nested_quadratic

CASE = nested_quadratic()


def sums(case, outer: int, inner: int, seed: int = 0) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Return Σ_i η̄_i ξ_i and Σ_i η̄_i² of each client, per coordinate."""
    found = []
    for number, data in enumerate(case.clients):
        drawn = sample(case.problem, data, stream(seed, AVERAGE, number), 1, outer, inner)
        (batch,) = split_steps(drawn, 1)
        mean_eta = batch.eta.mean(1)
        found.append(((mean_eta * batch.xi).sum(0), mean_eta.square().sum(0)))
    return found


def test_it_is_the_closed_form_of_the_nested_quadratic():
    solution = solve_saa(CASE, outer=7, inner=3, seed=2)
    cross, square = (sum(parts) for parts in zip(*sums(CASE, 7, 3, seed=2), strict=True))
    assert_close(solution.x, cross / square, tolerance=1e-8)
    assert solution.converged
    assert solution.gradient_norm <= 1e-9
    assert gap(solve_saa(CASE, outer=7, inner=3, seed=3).x, solution.x) > CLEARLY


def test_the_bias_remains_however_many_outer_samples_there_are():
    """The minimiser tends to E[μξ] / (E[μ²] + τ²/m), which is the optimum of the problem only for large m."""
    problem = NestedQuadratic(dimension=2, noise=2.0)
    task = Task(problem, problem.centres(2))
    square, cross, _ = problem._moments(task.clients, [1.0, 1.0])
    found = solve_saa(task, outer=60_000, inner=4).x
    assert gap(found, cross / (square + 4.0 / 4)) < 0.02
    assert gap(found, problem.optimum(task.clients)) > 0.1


def test_extrapolation_reduces_the_bias():
    problem = NestedQuadratic(dimension=2, noise=2.0)
    task = Task(problem, problem.centres(2))
    biased, better = (solve_saa(task, 60_000, 4, estimator=one).x for one in (plain, extrapolated))
    best = problem.optimum(task.clients)
    assert gap(better, best) < gap(biased, best) / 4


def test_clients_have_the_weights_of_the_task():
    sized = replace(CASES["classification"], weights="size")
    assert gap(solve_saa(sized, 50, 1, tolerance=1e-5).x, solve_saa(CASES["classification"], 50, 1).x) > CLEARLY


def test_the_gradient_vanishes_where_there_is_no_closed_form():
    """Near the minimiser, and in no direction below its value: the loss of the same samples is convex but for r."""
    case = invariant_logistic(unlike=0.5)
    solution = solve_saa(case, outer=40, inner=5)
    assert solution.converged
    batches = [
        split_steps(sample(case.problem, data, stream(0, AVERAGE, number), 1, 40, 5), 1)[0]
        for number, data in enumerate(case.clients)
    ]

    def value(x):
        return sum(float(Oracle(case.problem, plain).value(x, batch)) for batch in batches) / 4

    assert value(solution.x) == pytest.approx(solution.value, rel=1e-12)
    for direction in torch.eye(3, dtype=torch.float64):
        for sign in (-0.05, 0.05):
            assert value(solution.x + sign * direction) > solution.value


def test_costs_are_counted():
    costs = solve_saa(CASE, outer=7, inner=3).costs
    assert (costs.outer_samples, costs.inner_samples) == (28, 84)
    assert costs.gradients >= 2 * 28


def test_too_few_iterations_are_reported():
    solution = solve_saa(invariant_logistic(unlike=0.5), outer=40, inner=5, iterations=1)
    assert not solution.converged
    assert solution.gradient_norm > 1e-9


@pytest.mark.parametrize(
    ("case", "words"), [(CASES["in_ball"], "L-BFGS knows no set X"), (SADDLES["auroc"], "it is a min-max problem")]
)
def test_what_is_no_free_minimisation_is_refused(case, words):
    with pytest.raises(FedcsoError, match=words):
        solve_saa(case, 5, 5)


@pytest.mark.parametrize("wrong", [{"outer": 0}, {"inner": 0}, {"tolerance": 0.0}, {"iterations": 0}])
def test_numbers_are_checked(wrong):
    with pytest.raises(InvalidValue, match=next(iter(wrong))):
        solve_saa(CASE, **{"outer": 5, "inner": 2} | wrong)
