"""The contract of every problem; a row in `fedcso.problems.PROBLEMS` adds a new one to these tests."""

from dataclasses import replace

import pytest
import torch

from fedcso.algorithms.coda import CODA
from fedcso.algorithms.fcsg import FCSG
from fedcso.core.errors import FedcsoError
from fedcso.core.estimator import draw_for_all, sample
from fedcso.core.oracle import Oracle
from fedcso.core.plan import Plan
from fedcso.core.problem import split_steps
from fedcso.core.streams import stream
from fedcso.core.task import Task
from fedcso.core.tree import is_finite, named_leaves, stack
from fedcso.engines import run
from fedcso.estimators.plain import plain
from fedcso.problems import PROBLEMS
from fedcso.runs.config import option_names
from tests.few_characters import OPTIONS, instead_of_glyphs
from tests.helpers import assert_same_run

B, M = 3, 4
SMALL = {"maml": OPTIONS, "pretraining": OPTIONS, "invariant_logistic": {"clients": 3, "test_points": 20}}


@pytest.fixture(scope="module", autouse=True)
def characters():
    with pytest.MonkeyPatch.context() as patch:
        instead_of_glyphs(patch)
        yield


@pytest.fixture(scope="module", params=PROBLEMS)
def task(request, characters):
    name = request.param
    options = SMALL.get(name, {"clients": 3} if "clients" in option_names(name) else {})
    return PROBLEMS[name](**options)


def batch_of(task):
    drawn = sample(task.problem, task.clients[0], stream(5, 0, 0), 1, B, M)
    return next(iter(split_steps(drawn, 1)))


def test_it_has_clients_with_something_to_train_on(task):
    assert any(task.problem.trains(data) for data in task.clients)


def test_samples_are_those_of_the_stream(task):
    one, two = (named_leaves(batch_of(task)) for _ in range(2))
    assert all(torch.equal(a, b) for (_, a), (_, b) in zip(one, two, strict=True))


@pytest.mark.parametrize("steps", [1, 8])
def test_samples_drawn_together_are_those_of_each_client_to_the_last_bit(task, steps):
    clients = [data for data in task.clients if task.problem.trains(data)][:2]

    def streams():
        return [stream(5, client, 0) for client in range(len(clients))]

    together, costs = draw_for_all(plain, task.problem, clients, streams(), steps, B, M)
    alone = [plain.draw(task.problem, data, rng, steps, B, M) for data, rng in zip(clients, streams(), strict=True)]
    expected = named_leaves(stack([one.batch for one in alone], axis=1))
    for (name, found), (_, wanted) in zip(named_leaves(together), expected, strict=True):
        assert torch.equal(found, wanted), name
    assert costs == [one.costs for one in alone]


def test_there_is_a_loss_for_each_outer_sample_and_a_finite_gradient(task):
    problem, batch = task.problem, batch_of(task)
    x = Task(problem, []).starting_point(stream(0, 0, 0))
    losses = problem.outer(problem.inner(x, batch.xi, batch.eta), batch.xi)
    assert losses.shape == (B,)
    assert torch.isfinite(losses).all()
    gradient = Oracle(problem, plain).grad(x, batch)
    assert is_finite(gradient)
    assert [(name, leaf.shape) for name, leaf in named_leaves(gradient)] == [
        (name, leaf.shape) for name, leaf in named_leaves(x)
    ]


def test_engines_agree_on_it(task):
    plan = Plan(rounds=1, local_steps=2, outer_batch=B, inner_batch=M)
    task = replace(task, clients=task.clients[:2], test=None, validation=None, names=())
    algorithm = next(one for one in (FCSG(0.01), CODA(0.01)) if accepts(one, plan, task))
    expected = run(algorithm, task, plan, engine="reference")
    assert is_finite(expected.last)
    assert_same_run(run(algorithm, task, plan, engine="simulation"), expected, tolerance=1e-5)


def accepts(algorithm, plan, task):
    try:
        algorithm.check(plan, task.problem, task.clients)
    except FedcsoError:
        return False
    return True
