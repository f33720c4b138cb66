"""Fed-GLOMO: two paths on the same samples."""

from dataclasses import replace

import pytest

from fedcso.algorithms import FCSG, AccFCSGM, FedGLOMO
from fedcso.core.plan import Plan
from fedcso.engines import run
from fedcso.engines.job import Job
from tests import transcription as literal
from tests import transcription_server as server
from tests.helpers import CLEARLY, assert_close, gap, invariant_logistic, nested_quadratic, run_on

ALPHA, BETA = 0.1, 0.3
PLAN = Plan(rounds=5, local_steps=3, outer_batch=2, inner_batch=3, initial_batch=5)
SINGLE = Plan(rounds=8, local_steps=1, outer_batch=2, inner_batch=3)
LOGISTIC = invariant_logistic(unlike=0.5)
NESTED = {
    "nested_quadratic": (nested_quadratic(), literal.quadratic_gradient),
    "invariant_logistic": (LOGISTIC, literal.logistic_gradient(LOGISTIC.problem)),
}
nested = pytest.mark.parametrize(("case", "gradient"), NESTED.values(), ids=NESTED)


def last(method, case, plan=PLAN):
    return run_on("reference", method, case, plan).last


@nested
def test_it_is_that_of_the_paper(case, gradient):
    samples = literal.drawn(job := Job(FedGLOMO(ALPHA, BETA), case, PLAN))
    arguments = (job.start(), samples, gradient, PLAN.rounds, PLAN.local_steps, ALPHA)
    x, _ = server.fed_glomo(*arguments, BETA)
    assert_close(last(job.algorithm, case), x)
    assert gap(server.fed_glomo(*arguments, 0.6)[0], x) > CLEARLY


@nested
def test_without_local_steps_it_is_acc_fcsg_m(case, gradient):
    assert_close(last(FedGLOMO(ALPHA, BETA), case, SINGLE), last(AccFCSGM(ALPHA, BETA), case, SINGLE))
    assert gap(last(FedGLOMO(ALPHA, BETA), case), last(AccFCSGM(ALPHA, BETA), case)) > CLEARLY


@nested
def test_without_memory_and_local_steps_it_is_fcsg(case, gradient):
    """With local steps it is FedAvg with variance reduction within the round, which differs."""
    assert_close(last(FedGLOMO(ALPHA, 1.0), case, SINGLE), last(FCSG(ALPHA), case, SINGLE))
    assert gap(last(FedGLOMO(ALPHA, 1.0), case), last(FCSG(ALPHA), case)) > CLEARLY


def test_two_models_travel_each_way_and_every_round_starts_with_a_large_batch():
    case = NESTED["nested_quadratic"][0]
    found, plain = (run(method, case, PLAN).costs for method in (FedGLOMO(ALPHA, BETA), FCSG(ALPHA)))
    assert (found.bytes_up, found.bytes_down) == (2 * plain.bytes_up, 2 * plain.bytes_down)
    rounds, clients, q = PLAN.rounds, len(case.clients), PLAN.local_steps
    assert found.outer_samples == rounds * clients * (PLAN.initial + (q - 1) * PLAN.outer_batch)
    assert found.gradients == rounds * clients * (2 * PLAN.initial + 4 * (q - 1) * PLAN.outer_batch)


def test_clients_need_no_memory():
    """Whoever takes part, the server sends both models: the state that clients keep is empty."""
    case = NESTED["nested_quadratic"][0]
    kept, some = [], replace(PLAN, participation=2)
    run_on("reference", FedGLOMO(), case, some, callbacks=[lambda progress: kept.append(progress.snapshot())])
    assert all(not state for state in kept[-1].state["local"].values())
