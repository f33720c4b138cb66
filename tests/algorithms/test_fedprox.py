"""FedProx: the proximal term is part of the direction, and of nothing else."""

import pytest

from fedcso.algorithms import FCSG, FCSGM, AccFCSGM, FedAdam, FedGLOMO, FedProx, Scaffold
from fedcso.core.errors import FedcsoError
from fedcso.core.plan import Plan
from fedcso.engines.job import Job
from tests import transcription as literal
from tests import transcription_server as server
from tests.helpers import CLEARLY, assert_close, gap, nested_quadratic, run_on

ALPHA, BETA, MU = 0.1, 0.3, 0.7
PLAN = Plan(rounds=4, local_steps=3, outer_batch=2, inner_batch=3, initial_batch=5)
SINGLE = Plan(rounds=6, local_steps=1, outer_batch=2, inner_batch=3)
CASE = nested_quadratic()
BASES = [FCSG(ALPHA), FCSGM(ALPHA, BETA), AccFCSGM(ALPHA, BETA), Scaffold(ALPHA)]


def last(algorithm, plan=PLAN):
    return run_on("reference", algorithm, CASE, plan).last


def test_around_fcsg_it_is_that_of_the_paper():
    samples = literal.drawn(job := Job(FedProx(FCSG(ALPHA), MU), CASE, PLAN))
    x, q = job.start(), PLAN.local_steps
    for r in range(PLAN.rounds):
        batches = [[samples[t][n] for t in range(r * q, (r + 1) * q)] for n in range(len(CASE.clients))]
        x = literal.mean([server.local_sgd(x, some, literal.quadratic_gradient, ALPHA, MU) for some in batches])
    assert_close(last(job.algorithm), x)
    assert gap(last(FedProx(FCSG(ALPHA), MU / 2)), x) > CLEARLY


@pytest.mark.parametrize("base", BASES)
def test_without_a_weight_or_without_local_steps_it_is_the_method_inside(base):
    assert_close(last(FedProx(base, 0.0)), last(base))
    assert_close(last(FedProx(base, MU), SINGLE), last(base, SINGLE))
    assert gap(last(FedProx(base, MU)), last(base)) > CLEARLY


def test_the_term_does_not_enter_the_momentum():
    """Literally: u is a mean of gradients alone."""
    samples = literal.drawn(job := Job(FedProx(FCSGM(ALPHA, BETA), MU), CASE, PLAN))
    clients, q = range(len(CASE.clients)), PLAN.local_steps
    x, u = job.start(), None
    for r in range(PLAN.rounds):
        models, directions = [], []
        for n in clients:
            here, direction = x, u
            for t in range(r * q, (r + 1) * q):
                new = literal.quadratic_gradient(here, samples[t][n])
                direction = new if t == 0 else (1 - BETA) * direction + BETA * new
                here = here - ALPHA * (direction + MU * (here - x))
            models.append(here)
            directions.append(direction)
        x, u = literal.mean(models), literal.mean(directions)
    assert_close(run_on("reference", job.algorithm, CASE, PLAN).shared, {"x": x, "u": u})


def test_a_method_whose_clients_start_from_two_points_is_refused():
    for base in (FedGLOMO(), FedAdam(FedGLOMO())):
        with pytest.raises(FedcsoError, match=f"FedProx can't wrap {type(base).__name__}, whose clients start from"):
            Job(FedProx(base), CASE, PLAN)
