"""ComFedL: FCSG with weights of the clients by their losses, against a transcription."""

import math

import pytest

from fedcso.algorithms import FCSG, ComFedL
from fedcso.core.errors import FedcsoError
from fedcso.core.plan import Plan
from fedcso.core.task import Task
from fedcso.datasets import Examples
from fedcso.engines.job import Job
from fedcso.problems.robust import Robust
from tests import transcription as literal
from tests.helpers import CASES, CLEARLY, ENGINES, assert_close, gap, run_on
from tests.least_squares import CLIENTS, LeastSquares, slope, value

ALPHA, LAMBDA, LEVEL = 0.1, 0.7, 0.2
PLAN = Plan(rounds=4, local_steps=2, outer_batch=1, inner_batch=5, participation=2)


def case(temperature: float = LAMBDA) -> Task:
    return Task(Robust(LeastSquares(), temperature, LEVEL), CLIENTS)


@pytest.mark.parametrize("engine", ENGINES)
def test_it_is_its_description_line_by_line(engine):
    job = Job(ComFedL(ALPHA), case(), PLAN)
    samples, x = literal.drawn(job), job.start()
    for r in range(PLAN.rounds):
        ends = []
        for n in job.participants(r):
            x_n = x
            for t in PLAN.steps(r):
                part = Examples(*(column[0] for column in samples[t][n].eta))
                x_n = x_n - ALPHA * math.exp((value(x_n, part) - LEVEL) / LAMBDA) * slope(x_n, part)
            ends.append(x_n)
        x = literal.mean(ends)
    assert_close(run_on(engine, ComFedL(ALPHA), case(), PLAN).last, x)
    assert_close(run_on(engine, FCSG(ALPHA), case(), PLAN).last, x)


def test_with_a_high_temperature_it_is_fedavg():
    """All weights are 1: local steps along ∇ĝ, then averaging."""
    job = Job(ComFedL(ALPHA), case(1e12), PLAN)
    samples, x = literal.drawn(job), job.start()
    for r in range(PLAN.rounds):
        ends = []
        for n in job.participants(r):
            x_n = x
            for t in PLAN.steps(r):
                x_n = x_n - ALPHA * slope(x_n, Examples(*(column[0] for column in samples[t][n].eta)))
            ends.append(x_n)
        x = literal.mean(ends)
    assert_close(run_on("reference", ComFedL(ALPHA), case(1e12), PLAN).last, x, tolerance=1e-9)
    assert gap(run_on("reference", ComFedL(ALPHA), case(), PLAN).last, x) > CLEARLY


@pytest.mark.parametrize("name", CASES)
def test_other_problems_are_refused_by_name(name):
    with pytest.raises(
        FedcsoError, match=f"ComFedL can't be used with {type(CASES[name].problem).__name__}: .* such as robust"
    ):
        Job(ComFedL(), CASES[name], Plan())
