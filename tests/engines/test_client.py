"""One round at one client: in which portions samples are drawn, and what a reply holds."""

import pytest
import torch

from fedcso.algorithms import FCSG, BSpiderBoost, Scaffold
from fedcso.core.plan import Plan
from fedcso.engines.client import DRAW_AHEAD, local_round, portions
from fedcso.engines.job import Job
from tests.helpers import assert_close, nested_quadratic


def job_of(plan: Plan, algorithm=FCSG(0.1), clients: int = 1) -> Job:  # noqa: B008 - frozen
    case = nested_quadratic(clients)
    return Job(algorithm, case, plan)


def test_the_initial_batch_is_a_portion_of_its_own():
    job = job_of(Plan(rounds=2, local_steps=4, outer_batch=2, initial_batch=5))
    assert portions(job, 0) == [(range(1), 5), (range(1, 4), 2)]
    assert portions(job, 1) == [(range(4, 8), 2)]


def test_long_rounds_are_drawn_in_portions():
    q = 2 * DRAW_AHEAD + 3
    parts = portions(job_of(Plan(rounds=1, local_steps=q)), 0)
    assert [len(part.steps) for part in parts] == [DRAW_AHEAD, DRAW_AHEAD, 3]
    assert [t for part in parts for t in part.steps] == list(range(q))


def test_portions_follow_the_sizes_an_algorithm_asks_for():
    plan = Plan(rounds=4, local_steps=1, outer_batch=2, initial_batch=9)
    job = job_of(plan, BSpiderBoost(period=2, large_batch=7))
    assert [portions(job, r)[0].outer_batch for r in range(4)] == [7, 2, 7, 2]


def test_a_reply_depends_on_nothing_but_seed_client_round_and_message():
    job = job_of(Plan(rounds=3, local_steps=2), Scaffold(0.1), clients=3)
    message = job.algorithm.init(job.start())
    first, again = (local_round(job, 1, 2, message, None) for _ in range(2))
    assert_close(first.shared, again.shared, tolerance=0.0)
    assert_close(first.local, again.local, tolerance=0.0)
    elsewhere = [local_round(job, 2, 2, message, None), local_round(job, 1, 1, message, None)]
    assert all(not torch.equal(reply.shared["x"], first.shared["x"]) for reply in elsewhere)


def test_a_round_leaves_the_message_alone():
    job = job_of(Plan(rounds=1, local_steps=3), Scaffold(0.1))
    message = job.algorithm.init(job.start())
    local_round(job, 0, 0, message, None)
    assert_close(message, job.algorithm.init(job.start()), tolerance=0.0)


@pytest.mark.parametrize("step", range(4))
def test_the_model_after_the_output_step_is_kept_if_the_round_has_that_step(step):
    job = job_of(Plan(rounds=2, local_steps=2))
    reply = local_round(job, 0, 1, job.algorithm.init(job.start()), None, output_step=step)
    assert (reply.output is not None) == (step in job.plan.steps(1))
    if step == job.plan.steps(1)[-1]:
        assert_close(reply.output, reply.shared["x"], tolerance=0.0)
