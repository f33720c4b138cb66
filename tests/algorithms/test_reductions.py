"""Methods that are equal at certain settings, each with a control that differs at others."""

from dataclasses import replace

import pytest

from fedcso.algorithms import BSGD, FCSG, FCSGM, SOX, AccFCSGM, BSpiderBoost, FedAvg, LocalSCGD, LocalSCGDM, Scaffold
from fedcso.core.plan import Plan
from fedcso.engines.job import Job
from tests import transcription as literal
from tests.helpers import (
    CLEARLY,
    assert_close,
    classification,
    few_points,
    gap,
    invariant_logistic,
    nested_quadratic,
    run_on,
)

ALPHA = 0.1
PLAN = Plan(rounds=4, local_steps=3, outer_batch=2, inner_batch=3, initial_batch=5)
ONE_MACHINE = Plan(rounds=10, local_steps=1, outer_batch=2, inner_batch=3)
NESTED = {"nested_quadratic": nested_quadratic(), "invariant_logistic": invariant_logistic(unlike=0.5)}
IDENTITY_INNER = classification()

on_nested = pytest.mark.parametrize("case", NESTED.values(), ids=NESTED)


def last(algorithm, case, plan=PLAN):
    """Return the last iterate of a run."""
    return run_on("reference", algorithm, case, plan).last


@on_nested
def test_fcsg_m_without_memory_is_fcsg(case):
    fcsg = last(FCSG(ALPHA), case)
    assert_close(last(FCSGM(ALPHA, momentum=1.0), case), fcsg)
    assert gap(last(FCSGM(ALPHA, momentum=0.5), case), fcsg) > CLEARLY


@on_nested
def test_acc_fcsg_m_without_memory_is_fcsg(case):
    fcsg = last(FCSG(ALPHA), case)
    assert_close(last(AccFCSGM(ALPHA, momentum=1.0), case), fcsg)
    assert gap(last(AccFCSGM(ALPHA, momentum=0.5), case), fcsg) > CLEARLY


@on_nested
def test_local_scgdm_without_tracking_on_single_samples_is_fcsg_m(case):
    single = Plan(rounds=4, local_steps=3, outer_batch=1, inner_batch=3)
    momentum = 0.3
    fcsg_m = last(FCSGM(ALPHA, momentum), case, single)
    assert_close(last(LocalSCGDM(ALPHA, tracking=1.0, momentum=momentum), case, single), fcsg_m)
    assert gap(last(LocalSCGDM(ALPHA, tracking=0.5, momentum=momentum), case, single), fcsg_m) > CLEARLY


@on_nested
def test_local_scgdm_pairs_one_inner_value_with_all_samples_of_a_step(case):
    """With several ξ per step it differs from FCSG-M, which is why it fails on conditional problems."""
    momentum = 0.3
    scgdm = last(LocalSCGDM(ALPHA, tracking=1.0, momentum=momentum), case)
    assert gap(scgdm, last(FCSGM(ALPHA, momentum), case)) > CLEARLY


@on_nested
@pytest.mark.parametrize("b", [1, 2, 5])
def test_local_scgd_that_blends_each_without_tracking_is_fcsg(case, b):
    """For every batch size, unlike the rule with one y for a step."""
    plan, momentum = Plan(rounds=4, local_steps=3, outer_batch=b, inner_batch=3), 0.3
    fcsg, fcsg_m = last(FCSG(ALPHA), case, plan), last(FCSGM(ALPHA, momentum), case, plan)
    assert_close(last(LocalSCGD(ALPHA, 1.0, "each"), case, plan), fcsg)
    assert_close(last(LocalSCGDM(ALPHA, 1.0, momentum, "each"), case, plan), fcsg_m)
    assert gap(last(LocalSCGD(ALPHA, 0.5, "each"), case, plan), fcsg) > CLEARLY
    assert gap(last(LocalSCGDM(ALPHA, 0.5, momentum, "each"), case, plan), fcsg_m) > CLEARLY


@on_nested
@pytest.mark.parametrize("method", [LocalSCGD(ALPHA, 0.4), LocalSCGDM(ALPHA, 0.4, 0.3)], ids=["plain", "momentum"])
def test_both_blends_of_local_scgd_agree_on_single_samples(case, method):
    single, five = (Plan(rounds=4, local_steps=3, outer_batch=b, inner_batch=3) for b in (1, 5))
    other = replace(method, blend="each")
    assert_close(last(other, case, single), last(method, case, single))
    assert gap(last(other, case, five), last(method, case, five)) > CLEARLY


@pytest.mark.parametrize("b", [1, 2, 7])
def test_sox_without_tracking_is_fcsg_m(b):
    """For every batch size, because every ξ then uses its inner value of the current step."""
    case, plan, momentum = few_points(), Plan(rounds=4, local_steps=3, outer_batch=b, inner_batch=3), 0.3
    fcsg_m = last(FCSGM(ALPHA, momentum), case, plan)
    assert_close(last(SOX(ALPHA, tracking=1.0, momentum=momentum), case, plan), fcsg_m)
    assert gap(last(SOX(ALPHA, tracking=0.5, momentum=momentum), case, plan), fcsg_m) > CLEARLY


def test_sox_of_one_client_with_one_outer_sample_is_local_scgdm():
    """The single value that Local-SCGDM tracks is right for one ξ, and wrong for two."""
    plan, settings = Plan(rounds=6, local_steps=2, outer_batch=1, inner_batch=3), (ALPHA, 0.4, 0.3)
    one, two = few_points(sizes=(1,)), few_points(sizes=(2,))
    assert_close(last(SOX(*settings), one, plan), last(LocalSCGDM(*settings), one, plan))
    assert gap(last(SOX(*settings), two, plan), last(LocalSCGDM(*settings), two, plan)) > CLEARLY


@on_nested
def test_bsgd_is_fcsg_on_one_machine(case):
    alone = replace(case, clients=case.clients[:1])
    assert_close(last(BSGD(ALPHA), alone, ONE_MACHINE), last(FCSG(ALPHA), alone, ONE_MACHINE))
    assert gap(last(BSGD(ALPHA), alone, ONE_MACHINE), last(FCSG(ALPHA / 2), alone, ONE_MACHINE)) > CLEARLY


@on_nested
def test_bspiderboost_that_always_starts_anew_is_bsgd(case):
    alone = replace(case, clients=case.clients[:1])
    b = ONE_MACHINE.outer_batch
    bsgd = last(BSGD(ALPHA), alone, ONE_MACHINE)
    assert_close(last(BSpiderBoost(ALPHA, period=1, large_batch=b), alone, ONE_MACHINE), bsgd)
    assert gap(last(BSpiderBoost(ALPHA, period=2, large_batch=b), alone, ONE_MACHINE), bsgd) > CLEARLY


def test_fcsg_is_fedavg_where_the_inner_function_is_the_identity():
    fedavg = last(FedAvg(ALPHA), IDENTITY_INNER)
    assert_close(last(FCSG(ALPHA), IDENTITY_INNER), fedavg)
    assert gap(last(FCSGM(ALPHA, momentum=0.5), IDENTITY_INNER), fedavg) > CLEARLY


def test_acc_fcsg_m_is_stem_where_the_inner_function_is_the_identity():
    momentum = 0.3
    job = Job(AccFCSGM(ALPHA, momentum), IDENTITY_INNER, PLAN)
    samples, start = literal.drawn(job), literal.as_matrix(job.start())
    arguments = (start, samples, literal.softmax_gradient, PLAN.rounds, PLAN.local_steps, ALPHA)
    stem, _ = literal.stem(*arguments, momentum)
    assert_close(literal.as_matrix(last(job.algorithm, IDENTITY_INNER)), stem)
    other, _ = literal.stem(*arguments, 0.5)
    assert gap(other, stem) > CLEARLY


def test_inner_samples_do_not_matter_where_the_inner_function_is_the_identity():
    more = Plan(rounds=4, local_steps=3, outer_batch=2, inner_batch=30, initial_batch=5)
    assert_close(last(FCSG(ALPHA), IDENTITY_INNER, more), last(FCSG(ALPHA), IDENTITY_INNER, PLAN))
    nested = NESTED["nested_quadratic"]
    assert gap(last(FCSG(ALPHA), nested, more), last(FCSG(ALPHA), nested, PLAN)) > CLEARLY


@on_nested
def test_scaffold_is_fedavg_in_the_first_round(case):
    """All control variates are still zero."""
    first_round = Plan(rounds=1, local_steps=3)
    assert_close(last(Scaffold(ALPHA), case, first_round), last(FedAvg(ALPHA), case, first_round))
    assert gap(last(Scaffold(ALPHA), case), last(FedAvg(ALPHA), case)) > CLEARLY


@on_nested
def test_scaffold_of_a_single_client_is_fedavg(case):
    """Its control variate equals the server's, so the correction c − c_n vanishes."""
    alone = replace(case, clients=case.clients[:1])
    assert_close(last(Scaffold(ALPHA), alone), last(FedAvg(ALPHA), alone))
