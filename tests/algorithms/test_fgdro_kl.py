"""FGDRO-KL against a transcription; with a high temperature, or a single client, all weights are 1."""

import math
from dataclasses import replace

import pytest
import torch

from fedcso.algorithms import FCSGM, FGDROKL
from fedcso.core.algorithm import State
from fedcso.core.errors import FedcsoError
from fedcso.core.oracle import Oracle
from fedcso.core.plan import Plan
from fedcso.core.problem import Batch
from fedcso.core.task import Task
from fedcso.core.tree import is_finite
from fedcso.datasets import Examples
from fedcso.engines.job import Job
from fedcso.estimators.plain import plain
from fedcso.problems.robust import Robust
from tests import transcription as literal
from tests.helpers import CASES, CLEARLY, ENGINES, assert_close, gap, run_on
from tests.least_squares import CLIENTS, LeastSquares, slope, value

ALPHA, GAMMA, DELTA, BETA = 0.1, 0.4, 0.3, 0.6
LAMBDA, LEVEL = 0.7, 0.2
METHOD = FGDROKL(ALPHA, GAMMA, DELTA, BETA)
PLAN = Plan(rounds=5, local_steps=2, outer_batch=1, inner_batch=5, participation=2)


def case(temperature: float = LAMBDA, clients=CLIENTS) -> Task:
    return Task(Robust(LeastSquares(), temperature, LEVEL), clients)


def fgdro_kl(job):
    """Transcribe the method with v itself; return the final x, u and v, and all l_n."""
    samples, x = literal.drawn(job), job.start()
    u, v, losses = torch.zeros_like(x), torch.zeros((), dtype=torch.float64), {}
    for r in range(job.plan.rounds):
        ends = []
        for n in job.participants(r):
            x_n, u_n, v_n = x, u, v
            for t in job.plan.steps(r):
                part = Examples(*(column[0] for column in samples[t][n].eta))
                loss = value(x_n, part)
                losses[n] = (1 - GAMMA) * losses[n] + GAMMA * loss if n in losses else loss
                weight = torch.exp((losses[n] - LEVEL) / LAMBDA)
                v_n = weight if t == 0 else (1 - DELTA) * v_n + DELTA * weight
                z = weight / v_n * slope(x_n, part)
                u_n = z if t == 0 else (1 - BETA) * u_n + BETA * z
                x_n = x_n - ALPHA * u_n
            ends.append((x_n, u_n, v_n))
        x, u, v = (literal.mean(list(parts)) for parts in zip(*ends, strict=True))
    return x, u, v, losses


@pytest.mark.parametrize("participation", [1.0, 2], ids=["everyone", "two"])
@pytest.mark.parametrize("engine", ENGINES)
def test_it_is_its_description_line_by_line(engine, participation):
    plan, snapshots = replace(PLAN, participation=participation), []
    trace = run_on(engine, METHOD, case(), plan, callbacks=[lambda progress: snapshots.append(progress.snapshot())])
    x, u, v, losses = fgdro_kl(Job(METHOD, case(), plan))
    assert_close(trace.shared, {"x": x, "u": u, "log_v": v.log()})
    if engine == "reference":
        local = snapshots[-1].state["local"]
        assert_close({n: local[str(n)]["l"] for n in losses}, losses)


def test_with_a_high_temperature_it_is_fedavg_with_momentum():
    """FCSG-M on the same problem moves by ∇ĝ, because f' = 1."""
    momentum = run_on("reference", FCSGM(ALPHA, BETA), case(1e12), PLAN).shared
    found = run_on("reference", METHOD, case(1e12), PLAN).shared
    assert_close({name: found[name] for name in momentum}, momentum, tolerance=1e-9)
    assert gap(run_on("reference", METHOD, case(), PLAN).last, momentum["x"]) > CLEARLY


def test_a_single_client_has_weight_one():
    alone, plan = case(clients=CLIENTS[:1]), replace(PLAN, participation=1)
    momentum = run_on("reference", FCSGM(ALPHA, BETA), case(1e12, CLIENTS[:1]), plan).last
    assert_close(run_on("reference", FGDROKL(ALPHA, 1.0, 1.0, BETA), alone, plan).last, momentum, tolerance=1e-9)
    assert gap(run_on("reference", METHOD, alone, plan).last, momentum) > CLEARLY


def mean_direction(normalising: float) -> torch.Tensor:
    """Return the mean over clients of z, if all l_n and v are exact and every client sees all its examples."""
    x = torch.tensor([0.4, -0.3, 0.2], dtype=torch.float64)
    values = torch.stack([value(x, data) for data in CLIENTS])
    log_v = torch.logsumexp((values - LEVEL) / LAMBDA, 0) - math.log(3)
    directions = []
    for loss, data in zip(values, CLIENTS, strict=True):
        state = State(
            {"x": x, "u": torch.zeros_like(x), "log_v": log_v},
            {"l": loss, "known": torch.ones_like(loss), "start": log_v},
        )
        batch = Batch(torch.zeros(1), Examples(*(column.unsqueeze(0) for column in data)))
        moved = FGDROKL(ALPHA, GAMMA, normalising, 1.0).step(state, Oracle(case().problem, plain), batch, t=1)
        directions.append(moved.shared["u"])
    weighted = torch.softmax(values / LAMBDA, 0) @ torch.stack([slope(x, data) for data in CLIENTS])
    return literal.mean(directions) - weighted


def test_its_mean_direction_is_the_gradient_of_the_robust_objective():
    """∇ λ log (1/N) Σ exp(L_n/λ); as far as a client's own exponential is in v, its weight is nearer to 1."""
    assert float(mean_direction(1e-12).abs().max()) < 1e-10
    assert CLEARLY / 100 < float(mean_direction(0.01).abs().max()) < float(mean_direction(0.5).abs().max()) / 20


def test_nothing_overflows_where_exponentials_would():
    """At λ = 1e-3, exp(l/λ) is far beyond the largest number."""
    last = run_on("reference", METHOD, case(1e-3), replace(PLAN, participation=1.0, local_steps=1)).shared
    assert is_finite(last)


@pytest.mark.parametrize("name", CASES)
def test_other_problems_are_refused_by_name(name):
    with pytest.raises(
        FedcsoError, match=f"FGDRO-KL can't be used with {type(CASES[name].problem).__name__}: .* such as robust"
    ):
        Job(METHOD, CASES[name], Plan())
