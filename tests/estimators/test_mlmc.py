"""Multilevel Monte Carlo has the expectation of m inner samples at a lower cost."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fedcso.core.errors import FedcsoError, InvalidValue
from fedcso.core.oracle import Oracle
from fedcso.core.problem import Batch, split_steps
from fedcso.core.streams import stream
from fedcso.core.tree import index
from fedcso.estimators.halves import mean_of_halves
from fedcso.estimators.mlmc import level_sizes, probabilities, rt_mlmc, top_level, v_mlmc
from fedcso.estimators.plain import plain
from fedcso.problems import InvariantLogistic
from tests.estimators.monte_carlo import CASE, TRUTH, X, estimates
from tests.helpers import CLEARLY, FINITE, Case, assert_close, classification, gap, invariant_logistic, rare_positives

both = pytest.mark.parametrize("estimator", [v_mlmc, rt_mlmc], ids=["v_mlmc", "rt_mlmc"])


@pytest.mark.parametrize("m", [1, 2, 8])
@both
def test_the_expectation_is_that_of_the_plain_estimator_with_m_samples(estimator, m):
    found = estimates(estimator, b=3, m=m)
    assert found.agrees_with(TRUTH + CASE.problem.bias(X, m))
    assert not found.agrees_with(TRUTH + CASE.problem.bias(X, 2 * m))  # the check can tell m from 2m


def test_with_one_sample_there_is_one_level_and_it_is_the_plain_estimator():
    for estimator in (v_mlmc, rt_mlmc):
        (batch,) = split_steps(estimator.draw(CASE.problem, CASE.clients[0], stream(0, 0, 0), 1, 5, 1).batch, 1)
        xi, eta = (batch.xi.xi, batch.eta) if estimator is rt_mlmc else (batch.xi[0], batch.eta[0])
        assert_close(estimator(CASE.problem, X, batch), plain(CASE.problem, X, Batch(xi, eta)))


def test_v_mlmc_is_the_sum_of_its_levels_means():
    (batch,) = split_steps(v_mlmc.draw(CASE.problem, CASE.clients[0], stream(0, 0, 0), 1, 6, 8).batch, 1)
    by_hand = torch.zeros((), dtype=torch.float64)
    for xi, eta in zip(batch.xi, batch.eta, strict=True):
        whole = plain(CASE.problem, X, Batch(xi, eta))
        if eta.shape[1] > 1:
            half = eta.shape[1] // 2
            whole = whole - 0.5 * plain(CASE.problem, X, Batch(xi, eta[:, :half]))
            whole = whole - 0.5 * plain(CASE.problem, X, Batch(xi, eta[:, half:]))
        by_hand = by_hand + whole.mean()
    assert_close(v_mlmc(CASE.problem, X, batch).mean(), by_hand)


@given(b=st.integers(1, 300), levels=st.integers(0, 8))
def test_higher_levels_have_fewer_outer_samples_and_none_is_empty(b, levels):
    sizes = level_sizes(b, 2**levels)
    assert len(sizes) == levels + 1
    assert sizes[0] == b
    assert sizes == sorted(sizes, reverse=True)
    assert all(
        max(1, b * 2 ** (-1.5 * level)) <= size < b * 2 ** (-1.5 * level) + 1 for level, size in enumerate(sizes)
    )


def test_v_mlmc_has_less_bias_than_plain_for_the_same_samples():
    """With 16 outer samples and levels up to 64, it costs less than plain with m = 10 and has the bias of m = 64."""
    multilevel = estimates(v_mlmc, b=16, m=64, draws=4000)
    single = estimates(plain, b=16, m=10, draws=4000)
    assert multilevel.samples <= single.samples
    assert (multilevel.mean - TRUTH).norm() < 0.5 * (single.mean - TRUTH).norm()
    assert single.variance < multilevel.variance < 10 * single.variance  # the price of the smaller bias


def test_rt_mlmc_costs_about_two_samples_whatever_m():
    """In exchange its variance is larger, but bounded in m."""
    found = {m: estimates(rt_mlmc, b=1, m=m, draws=20_000) for m in (4, 64)}
    for m, one in found.items():
        expected = float((probabilities(m) * 2.0 ** torch.arange(top_level(m) + 1)).sum())
        assert math.isclose(one.samples, expected, rel_tol=0.1)
        assert one.samples < 2.5
    assert found[64].variance < 3 * found[4].variance


@both
def test_the_samples_are_counted(estimator):
    steps, b, m = 5, 4, 8
    drawn = estimator.draw(CASE.problem, CASE.clients[0], stream(0, 0, 0), steps, b, m)
    if estimator is v_mlmc:
        assert drawn.costs.outer_samples == steps * (4 + 2 + 1 + 1)
        assert drawn.costs.inner_samples == steps * (4 * 1 + 2 * 2 + 1 * 4 + 1 * 8)
    else:
        assert drawn.costs.outer_samples == steps * b
        different = sum(len(row.unique(dim=0)) for row in drawn.batch.eta.flatten(0, 1))
        assert drawn.costs.inner_samples == different  # repeated samples that fill up the batch are not counted


@given(seed=st.integers(0, 10**6), levels=st.integers(0, 5))
def test_what_rt_mlmc_repeats_changes_neither_the_mean_nor_the_halves(seed, levels):
    m = 2**levels
    (batch,) = split_steps(rt_mlmc.draw(CASE.problem, CASE.clients[0], stream(seed, 0, 0), 1, 3, m).batch, 1)
    for row, coupled, weight in zip(batch.eta, batch.xi.coupled, batch.xi.weight, strict=True):
        drawn = row.unique(dim=0)
        assert_close(row.mean(0), drawn.mean(0))
        assert bool(coupled) == (len(drawn) > 1)
        assert_close(weight, 1 / probabilities(m)[top_level(len(drawn))])
        if coupled:
            first, second = (half.unique(dim=0) for half in row.chunk(2))
            assert len(first) == len(second) == len(drawn) // 2


@both
def test_one_batch_can_be_evaluated_at_two_points(estimator):
    """Variance reduction does this: once a batch is drawn, nothing is random any more."""
    oracle = Oracle(CASE.problem, estimator)
    (batch,) = split_steps(estimator.draw(CASE.problem, CASE.clients[0], stream(0, 0, 0), 1, 4, 8).batch, 1)
    assert_close(oracle.grad(X, batch), oracle.grad(X, batch), tolerance=0.0)
    near = gap(oracle.grad(X + 1e-7, batch), oracle.grad(X, batch))
    assert 0 < near < 1e-4


@both
def test_problems_with_shared_inner_batches_and_without_inner_samples_work(estimator):
    for case in (FINITE["auprc"], classification()):
        oracle = Oracle(case.problem, estimator)
        (batch,) = split_steps(estimator.draw(case.problem, case.clients[0], stream(0, 0, 0), 1, 3, 4).batch, 1)
        gradient = oracle.grad(case.problem.init(stream(0, 0, 0)), batch)
        assert all(torch.isfinite(leaf).all() for leaf in gradient.values())


def test_without_inner_samples_all_levels_but_the_first_vanish():
    case = classification()
    x = case.problem.init(stream(0, 0, 0))
    (batch,) = split_steps(v_mlmc.draw(case.problem, case.clients[2], stream(0, 0, 0), 1, 4, 8).batch, 1)
    first = Batch(batch.xi[0], batch.eta[0])
    assert_close(Oracle(case.problem, v_mlmc).value(x, batch), Oracle(case.problem, plain).value(x, first))


@pytest.mark.parametrize("m", [3, 10, 12])
@both
def test_m_must_be_a_power_of_two(estimator, m):
    with pytest.raises(InvalidValue, match=f"inner_batch = {m} .*a power of 2"):
        estimator.check(m)


@both
def test_a_problem_that_draws_only_the_mean_is_refused(estimator):
    problem = InvariantLogistic(dimension=3, draw_mean=True)
    with pytest.raises(FedcsoError, match=r"draws fewer.*set draw_mean to false"):
        estimator.draw(problem, problem.clients(1)[0], stream(0, 0, 0), 9, 4, 8)


def test_halves_are_averaged_for_each_outer_sample():
    case: Case = invariant_logistic()
    x = case.problem.init(stream(0, 0, 0))
    (batch,) = split_steps(plain.draw(case.problem, case.clients[0], stream(0, 0, 0), 1, 3, 4).batch, 1)
    by_hand = sum(plain(case.problem, x, Batch(batch.xi, half)) for half in batch.eta.split(2, 1)) / 2
    assert_close(mean_of_halves(case.problem, x, batch), by_hand)
    assert gap(by_hand, plain(case.problem, x, batch)) > CLEARLY


def test_a_shared_inner_batch_is_not_shared_between_levels_or_steps():
    case = rare_positives(type(FINITE["auprc"].problem))
    drawn = rt_mlmc.draw(case.problem, case.clients[2], stream(0, 0, 0), 40, 2, 8).batch
    assert index(drawn.eta, 0).labels.shape == (2, 8)
    assert len(drawn.eta.inputs.flatten(0, 1).flatten(1).unique(dim=0)) > 40
