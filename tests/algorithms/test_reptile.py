"""Reptile: FedAvg with a server rate on the tasks' ordinary losses."""

from dataclasses import replace

import pytest
import torch

from fedcso.algorithms import FedAvg, Reptile
from fedcso.core.errors import FedcsoError, InvalidValue
from fedcso.core.plan import Plan
from fedcso.core.task import Task
from fedcso.engines.job import Job
from fedcso.problems.few_shot_tasks import fix_tasks
from fedcso.problems.personalised import personalised as personalised_task
from tests import transcription as literal
from tests.helpers import CASES, CLEARLY, ENGINES, assert_close, gap, personalised, run_on
from tests.problems.test_maml import classes, maml

ALPHA, SERVER = 0.2, 0.3
CASE = personalised(inner_steps=0)
PLAN = Plan(rounds=4, local_steps=3, outer_batch=4, participation=2)


@pytest.mark.parametrize("engine", ENGINES)
def test_the_server_moves_towards_what_clients_reach(engine):
    job = Job(Reptile(ALPHA, SERVER), CASE, PLAN)
    samples, x = literal.drawn(job), literal.as_matrix(job.start())
    for r in range(PLAN.rounds):
        changes = []
        for n in job.participants(r):
            x_n = x
            for t in PLAN.steps(r):
                x_n = x_n - ALPHA * literal.softmax_gradient(x_n, samples[t][n])
            changes.append(x_n - x)
        x = x + SERVER * literal.mean(changes)
    assert_close(literal.as_matrix(run_on(engine, job.algorithm, CASE, PLAN).last), x)


def test_with_a_server_rate_of_one_it_is_fedavg():
    fedavg = run_on("reference", FedAvg(ALPHA), CASE, PLAN).last
    assert_close(run_on("reference", Reptile(ALPHA, 1.0), CASE, PLAN).last, fedavg)
    assert gap(run_on("reference", Reptile(ALPHA, SERVER), CASE, PLAN).last, fedavg) > CLEARLY


def test_it_runs_on_maml_with_one_task_per_client():
    """The steps of a round are those of an ordinary classifier of the query images."""
    clients = [fix_tasks(1, 3, classes(seed=n), torch.Generator().manual_seed(n)) for n in range(2)]
    case, plan = Task(maml(inner_steps=0), clients), Plan(rounds=1, local_steps=2, outer_batch=1, inner_batch=1)
    reached = run_on("reference", FedAvg(0.1), case, plan).last
    start = Job(Reptile(), case, plan).start()
    moved = run_on("reference", Reptile(0.1, SERVER), case, plan).last
    expected = {name: start[name] + SERVER * (reached[name] - start[name]) for name in start}
    assert_close(moved, expected, tolerance=1e-6)


def test_it_learns_a_model_that_adapts():
    """After adaptation the accuracy is higher than at the start, and than without adaptation."""
    task = personalised_task(clients=4, inner_steps=0, classes=5)
    trace = run_on(
        "stacked", Reptile(0.5, 1.0), task, Plan(rounds=15, local_steps=5, outer_batch=20, evaluate_every=15)
    )
    accuracy = [row["accuracy"] for row in trace.rows]
    assert accuracy[-1] > 0.8 > accuracy[0]


# ------------------------------------------------------------------------------------------- refusals


def test_a_single_step_is_refused():
    with pytest.raises(
        InvalidValue, match="local_steps = 1 must be at least 2 for Reptile: with 1 it is joint training"
    ):
        Job(Reptile(), CASE, replace(PLAN, local_steps=1))


def test_adaptation_in_training_is_refused():
    with pytest.raises(InvalidValue, match="inner_steps = 1 must be 0 for Reptile"):
        Job(Reptile(), personalised(), PLAN)


def test_tasks_drawn_afresh_are_refused():
    with pytest.raises(FedcsoError, match="one task for all steps of a round, but client 0 draws a new one for each"):
        Job(Reptile(), Task(maml(inner_steps=0), [classes()]), replace(PLAN, participation=1))


def test_a_new_task_in_every_round_is_enough():
    case = Task(maml(inner_steps=0, one_task_per_round=True), [classes()])
    trace = run_on("reference", Reptile(), case, replace(PLAN, rounds=2, participation=1, outer_batch=1, inner_batch=1))
    assert trace.failure is None


def test_other_problems_are_refused():
    with pytest.raises(FedcsoError, match="Reptile can't be used with Classification"):
        Job(Reptile(), CASES["classification"], PLAN)


def test_a_schedule_of_the_server_is_refused():
    with pytest.raises(InvalidValue, match=r"^server_rate = .* must be a number: it is the same in all rounds"):
        Reptile(server_rate=lambda t: 0.5)
