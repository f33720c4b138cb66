"""SLATE and SLATE-M against literal transcriptions: adapt, then mix, at every step."""

import pytest
import torch

from fedcso.algorithms import FCSG, SLATE, SLATEM, AccFCSGM
from fedcso.core.errors import InvalidValue
from fedcso.core.plan import Plan
from fedcso.core.topology import mixing_matrix
from fedcso.engines.job import Job
from tests import transcription as literal
from tests.helpers import CLEARLY, assert_close, gap, nested_quadratic, run_on

ALPHA, BETA = 0.1, 0.3
CASE = nested_quadratic(clients=5)
PLAN = Plan(rounds=7, local_steps=1, outer_batch=2, inner_batch=3, initial_batch=4)
G = literal.quadratic_gradient


def slate(job: Job, matrix: torch.Tensor) -> torch.Tensor:
    """x_n ← Σ_j W_nj (x_j − α G_j(x_j)); return all x_n."""
    samples, x = literal.drawn(job), [job.start()] * len(job.clients)
    for t in range(job.plan.total_steps):
        moved = [x_j - ALPHA * G(x_j, samples[t][j]) for j, x_j in enumerate(x)]
        x = [sum(w * x_j for w, x_j in zip(row, moved, strict=True)) for row in matrix.tolist()]
    return torch.stack(x)


def slate_m(job: Job, matrix: torch.Tensor) -> torch.Tensor:
    """As SLATE, along u_j = G_j(x_j) + (1 − β)(u_j − G_j(x_j of the last step)), which is mixed, too."""
    samples, x = literal.drawn(job), [job.start()] * len(job.clients)
    u, last = [None] * len(x), x
    for t in range(job.plan.total_steps):
        for j, batch in enumerate(samples[t]):
            u[j] = G(x[j], batch) + (0 if t == 0 else (1 - BETA) * (u[j] - G(last[j], batch)))
        moved, last = [x_j - ALPHA * u_j for x_j, u_j in zip(x, u, strict=True)], x
        x, u = (
            [sum(w * some for w, some in zip(row, every, strict=True)) for row in matrix.tolist()]
            for every in (moved, u)
        )
    return torch.stack(x)


METHODS = [(SLATE(ALPHA), FCSG(ALPHA), slate), (SLATEM(ALPHA, BETA), AccFCSGM(ALPHA, BETA), slate_m)]
both = pytest.mark.parametrize(("method", "base", "description"), METHODS, ids=["SLATE", "SLATE-M"])


@both
def test_it_is_its_description_line_by_line_and_a_ring_is_not_a_server(method, base, description):
    states = []
    trace = run_on(
        "reference", method, CASE, PLAN, callbacks=[lambda now: states.append(now.snapshot().state["kept"]["clients"])]
    )
    x = description(Job(method, CASE, PLAN), mixing_matrix("ring", 5))
    assert_close(torch.stack([one["shared"]["x"] for one in states[-1]]), x)
    assert_close(trace.last, x.mean(0))
    assert gap(x[0], x[2]) > CLEARLY
    server = run_on("reference", base, CASE, PLAN).last
    assert gap(trace.last, server) > CLEARLY
    everyone = description(Job(method, CASE, PLAN), mixing_matrix("complete", 5))
    assert_close(everyone, server.expand(5, -1))


@both
def test_it_is_its_base_over_a_ring(method, base, description):
    ring = Plan(**vars(PLAN) | {"topology": "ring"})
    assert_close(run_on("reference", base, CASE, ring).shared, run_on("reference", method, CASE, PLAN).shared, 0.0)


def test_the_mean_moves_by_the_mean_of_the_gradients():
    job, states = Job(SLATE(ALPHA), CASE, PLAN), []
    run_on("reference", SLATE(ALPHA), CASE, PLAN, callbacks=[lambda now: states.append(now.snapshot().state)])
    samples = literal.drawn(job)
    for t in range(1, PLAN.rounds):
        before = [one["shared"]["x"] for one in states[t - 1]["kept"]["clients"]]
        gradients = [G(x, samples[t][n]) for n, x in enumerate(before)]
        moved = states[t]["shared"]["x"] - states[t - 1]["shared"]["x"]
        assert_close(moved, -ALPHA * literal.mean(gradients))


@both
def test_local_steps_are_for_its_base(method, base, description):
    says = (
        r"local_steps = 2 must be 1 for SLATE(-M)?; for steps between exchanges use (Acc-)?FCSG(-M)? with the topology"
    )
    with pytest.raises(InvalidValue, match=says):
        Job(method, CASE, Plan(local_steps=2))
