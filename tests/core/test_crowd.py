"""Very many clients: they are made when they are asked for, and a sample stands for all of them."""

from collections import Counter
from dataclasses import replace

import pytest
import torch

from fedcso.algorithms import FCSGM, SOX, Scaffold
from fedcso.core.crowd import SAMPLE, Crowd
from fedcso.core.errors import FedcsoError, InvalidValue
from fedcso.core.plan import Plan
from fedcso.core.task import Task
from fedcso.engines.job import Job
from fedcso.problems import NestedQuadratic
from fedcso.reports.tables import client_rows
from tests.helpers import ENGINES, assert_same_run, few_points, run_on

MANY = 10**6
PROBLEM = NestedQuadratic(dimension=2)
PLAN = Plan(rounds=3, local_steps=2, participation=4, evaluate_every=2)


def centre(number):
    return torch.full((2,), 1.0 + number % 7, dtype=PROBLEM.dtype)


class Counting:
    """Makes clients and counts them."""

    def __init__(self):
        self.made = Counter()

    def __call__(self, number):
        self.made[number] += 1
        return centre(number)


def test_a_crowd_is_a_sequence():
    crowd = Crowd(5, lambda n: 10 * n)
    assert len(crowd) == 5
    assert list(crowd) == [0, 10, 20, 30, 40]
    assert (crowd[1], crowd[-1], crowd[1:3]) == (10, 40, [10, 20])
    with pytest.raises(IndexError):
        crowd[5]


@pytest.mark.parametrize("number", [0, -1, 2.5])
def test_a_crowd_has_clients(number):
    with pytest.raises(InvalidValue, match=f"clients = {number} must be a whole number, at least 1"):
        Crowd(number, centre)


def test_a_sample_is_drawn_from_all_clients_and_stays_the_same():
    sample = Crowd(MANY, centre).sample
    assert sample == sorted(set(sample)) == Crowd(MANY, centre).sample
    assert len(sample) == SAMPLE
    assert sample[0] < MANY // 100 < 99 * MANY // 100 < sample[-1]
    assert list(Crowd(7, centre).sample) == [*range(7)]
    assert len(Crowd(7, centre, sample=3).sample) == 3


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("algorithm", [FCSGM(0.01, 0.1), Scaffold(0.01)])
def test_only_participants_and_the_sample_are_made(engine, algorithm):
    counting = Counting()
    task = Task(PROBLEM, Crowd(MANY, counting, sample=5))
    trace = run_on(engine, algorithm, task, PLAN)
    assert counting.made.keys() == {*trace.participation, *task.sample}
    assert trace.participation.total() == PLAN.rounds * PLAN.participation
    assert max(counting.made[n] for n in task.sample) == 1


@pytest.mark.parametrize("engine", ENGINES)
def test_a_crowd_runs_as_a_list_of_the_same_clients(engine):
    crowd = Crowd(9, centre)
    listed = run_on(engine, Scaffold(0.01), Task(PROBLEM, list(crowd)), PLAN)
    assert_same_run(run_on(engine, Scaffold(0.01), Task(PROBLEM, crowd), PLAN), listed)


def test_all_engines_draw_the_same_participants_of_a_crowd():
    runs = [run_on(engine, FCSGM(0.01, 0.1), Task(PROBLEM, Crowd(MANY, centre, sample=5)), PLAN) for engine in ENGINES]
    for one in runs[1:]:
        assert_same_run(one, runs[0])


def test_f_is_that_of_the_sample():
    task = Task(PROBLEM, Crowd(MANY, centre, sample=5))
    alone = Task(PROBLEM, [centre(n) for n in task.sample])
    x = torch.ones(2, dtype=PROBLEM.dtype)
    job = Job(FCSGM(0.01, 0.1), task, PLAN)
    assert job.evaluate([x]) == Job(FCSGM(0.01, 0.1), alone, PLAN).evaluate([x])
    assert task.remark().startswith(
        "F, the digest of the data and the tables of clients are those of 5 of the 1,000,000"
    )
    assert task.remark().startswith("F, ")
    assert alone.remark() == ""


def test_f_of_clients_that_are_alike_is_exact():
    same = centre(0)
    task, one = Task(PROBLEM, Crowd(MANY, lambda n: same)), Task(PROBLEM, [same])
    x = torch.ones(2, dtype=PROBLEM.dtype)
    assert Job(FCSGM(0.01, 0.1), task, PLAN).evaluate([x]) == Job(FCSGM(0.01, 0.1), one, Plan()).evaluate([x])
    assert task.remark().startswith("the digest of the data and the tables of clients are those of 1,000 of the")


def test_the_digest_depends_on_the_sample_and_the_number():
    small = Task(PROBLEM, Crowd(7, centre))
    assert small.digest() == Task(PROBLEM, list(small.clients)).digest()
    digests = {
        Task(PROBLEM, Crowd(number, make)).digest() for number in (MANY, MANY + 1) for make in (centre, torch.tensor)
    }
    assert len(digests) == 4


def test_the_table_of_clients_shows_the_sample():
    task = Task(PROBLEM, Crowd(MANY, centre, sample=5))
    trace = run_on("reference", FCSGM(0.01, 0.1), task, PLAN)
    rows = client_rows({"FCSG-M": [[trace]]}, [0], task)
    assert [row["client"] for row in rows] == [str(n) for n in task.sample]
    assert [row["rounds"] for row in rows] == [trace.participation[n] for n in task.sample]


class Sometimes(NestedQuadratic):
    """A problem some of whose clients have no training data."""

    def trains(self, data):
        return bool(data[0] != 3)


def test_a_crowd_is_not_searched_for_clients_without_data():
    problem = Sometimes(dimension=2)
    assert Task(problem, [centre(n) for n in range(5)]).able == [0, 1, 3, 4]
    assert Task(problem, Crowd(5, centre)).able == [0, 1, 3, 4]  # all of them are in the sample
    with pytest.raises(
        FedcsoError, match=r"client \d+ has no training data: leave clients without data out of a crowd"
    ):
        Job(FCSGM(0.01, 0.1), Task(problem, Crowd(MANY, centre)), PLAN)


def test_a_method_checks_the_sample():
    case = few_points()
    counting = Counter()

    def make(number):
        counting[number] += 1
        return case.clients[number % 4]

    Job(SOX(0.1), Task(case.problem, Crowd(MANY, make, sample=8)), PLAN)
    assert counting.total() == 8


def test_a_crowd_has_a_limit():
    with pytest.raises(InvalidValue, match="clients = 1000000000 must be at most 214,748,364"):
        Crowd(10**9, centre)


def test_participants_must_be_there():
    with pytest.raises(InvalidValue, match="participation = 1000001 must be at most 1000000"):
        Job(FCSGM(0.01, 0.1), Task(PROBLEM, Crowd(MANY, centre, sample=5)), replace(PLAN, participation=MANY + 1))
