"""Acc-FCSG-M with partial participation: the previous iterate is valid for one round only."""

from fedcso.algorithms import AccFCSGM
from fedcso.core.plan import Plan
from fedcso.engines.job import Job
from tests import transcription as literal
from tests.helpers import CLEARLY, assert_close, gap, nested_quadratic, run_on

ALPHA, BETA = 0.1, 0.3


def test_a_client_that_missed_a_round_takes_a_step_of_fcsg_m():
    case = nested_quadratic(clients=2)
    plan = Plan(rounds=12, local_steps=1, outer_batch=2, inner_batch=3, participation=1)
    job = Job(AccFCSGM(ALPHA, BETA), case, plan)
    samples = literal.drawn(job)
    chosen = [plan.participants(job.seed, r, 2)[0] for r in range(plan.rounds)]

    def at_work(keeps_its_previous_iterate: bool):
        x, seen = job.start(), {}
        for t, n in enumerate(chosen):
            gradient = literal.quadratic_gradient(x, samples[t][n])
            present_before = t > 0 and chosen[t - 1] == n
            if t == 0:
                u = gradient
            elif present_before or (keeps_its_previous_iterate and n in seen):
                u = gradient + (1 - BETA) * (u - literal.quadratic_gradient(seen[n], samples[t][n]))
            else:
                u = (1 - BETA) * u + BETA * gradient
            seen[n] = x
            x = x - ALPHA * u
        return x

    last = run_on("reference", job.algorithm, case, plan).last
    assert_close(last, at_work(keeps_its_previous_iterate=False))
    assert gap(last, at_work(keeps_its_previous_iterate=True)) > CLEARLY
