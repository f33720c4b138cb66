"""One round at one client: in which portions samples are drawn, and what a reply holds."""

import pytest
import torch

from fedcso.algorithms import FCSG, FCSGM, BSpiderBoost, Scaffold
from fedcso.codecs import Int8
from fedcso.core.codec import Codec, full
from fedcso.core.costs import Costs
from fedcso.core.plan import Plan
from fedcso.core.streams import START, stream
from fedcso.core.task import Task
from fedcso.core.tree import nbytes
from fedcso.engines.client import DRAW_AHEAD, Client, local_round, portions
from fedcso.engines.work import Work
from tests.helpers import assert_close, nested_quadratic

CASE = nested_quadratic(clients=3)


METHOD = FCSG(0.1)


def work_of(plan: Plan, algorithm=METHOD, codec: Codec = full) -> Work:
    return Work(algorithm, CASE.problem, plan, codec=codec)


def client(number: int = 0, *held: dict) -> Client:
    return Client(number, CASE.clients[number], *held)


def message_for(work: Work) -> dict:
    return work.algorithm.init(Task(work.problem, []).starting_point(stream(0, START, 0))).shared


def test_the_initial_batch_is_a_portion_of_its_own():
    work = work_of(Plan(rounds=2, local_steps=4, outer_batch=2, initial_batch=5))
    assert portions(work, 0) == [(range(1), 5), (range(1, 4), 2)]
    assert portions(work, 1) == [(range(4, 8), 2)]


def test_long_rounds_are_drawn_in_portions():
    q = 2 * DRAW_AHEAD + 3
    parts = portions(work_of(Plan(rounds=1, local_steps=q)), 0)
    assert [len(part.steps) for part in parts] == [DRAW_AHEAD, DRAW_AHEAD, 3]
    assert [t for part in parts for t in part.steps] == list(range(q))


def test_portions_follow_the_sizes_an_algorithm_asks_for():
    plan = Plan(rounds=4, local_steps=1, outer_batch=2, initial_batch=9)
    work = work_of(plan, BSpiderBoost(period=2, large_batch=7))
    assert [portions(work, r)[0].outer_batch for r in range(4)] == [7, 2, 7, 2]


def test_a_reply_depends_on_nothing_but_seed_client_round_and_message():
    work = work_of(Plan(rounds=3, local_steps=2), Scaffold(0.1))
    message = message_for(work)
    first, again = (local_round(work, client(1), 2, message) for _ in range(2))
    assert_close(first.message, again.message, tolerance=0.0)
    assert_close(first.local, again.local, tolerance=0.0)
    elsewhere = [local_round(work, client(2), 2, message), local_round(work, client(1), 1, message)]
    assert all(not torch.equal(reply.message["x"], first.message["x"]) for reply in elsewhere)


def test_a_round_leaves_the_message_alone():
    work = work_of(Plan(rounds=1, local_steps=3), Scaffold(0.1))
    message = message_for(work)
    local_round(work, client(), 0, message)
    assert_close(message, message_for(work), tolerance=0.0)


@pytest.mark.parametrize("step", range(4))
def test_the_model_after_the_output_step_is_kept_if_the_round_has_that_step(step):
    work = work_of(Plan(rounds=2, local_steps=2))
    reply = local_round(work, client(), 1, message_for(work), output_step=step)
    assert (reply.output is not None) == (step in work.plan.steps(1))
    if step == work.plan.steps(1)[-1]:
        assert_close(reply.output, reply.message["x"], tolerance=0.0)


def test_a_reply_is_a_message_of_the_codec_and_counted_as_such():
    plan = Plan(rounds=2, local_steps=3, outer_batch=2, inner_batch=4)
    work = work_of(plan, FCSGM(0.1, 0.3), codec=Int8())
    message = work.codec.broadcast(message_for(work), {}, work.round(0)).to_new
    reply = local_round(work, client(), 0, message)
    assert reply.message["u"]["values"].dtype == torch.int8
    assert reply.memory.keys() == {"error"}
    assert reply.costs == Costs(outer_samples=6, inner_samples=24, gradients=6, bytes_up=nbytes(reply.message))
    again = local_round(work, client(0, reply.local, reply.memory), 1, message)
    without = local_round(work, client(0, reply.local), 1, message)
    assert not torch.equal(again.memory["error"], without.memory["error"])
