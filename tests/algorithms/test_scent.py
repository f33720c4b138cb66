"""SCENT: a weight that adapts to the tracked value's level; against a transcription in logarithms."""

import math

import pytest
import torch

from fedcso.algorithms import FCSG, SCENT, SOAP
from fedcso.core.algorithm import State
from fedcso.core.errors import FedcsoError
from fedcso.core.oracle import Oracle
from fedcso.core.plan import Plan
from fedcso.core.problem import Batch
from fedcso.core.task import Task
from fedcso.datasets import Examples
from fedcso.engines.job import Job
from fedcso.estimators.plain import plain
from tests import transcription as literal
from tests.helpers import CASES, FINITE, assert_close, gap, run_on
from tests.least_squares import CLIENTS, LogMeanExp

ALPHA, A = 0.05, 0.8
PROBLEM = LogMeanExp()
CASE = Task(PROBLEM, CLIENTS)
PLAN = Plan(rounds=6, local_steps=2, outer_batch=2, inner_batch=3, participation=2)


def scent(job):
    """Transcribe the method with ν, and with gradients λ mean exp(s − ν) ∇s written out; return x and all ν."""
    samples, x = literal.drawn(job), job.start()
    nu: list[dict[int, torch.Tensor]] = [{} for _ in CLIENTS]
    for r in range(job.plan.rounds):
        ends = []
        for n in job.participants(r):
            x_n = x
            for t in job.plan.steps(r):
                groups, (inputs, labels) = samples[t][n].xi.tolist(), samples[t][n].eta
                parts, new = [], {}
                for i, a, b in zip(groups, inputs, labels, strict=True):
                    residual = a @ x_n - b
                    s = (0.5 * residual**2 - PROBLEM.level) / PROBLEM.temperature
                    mean = s.exp().mean()
                    if i in nu[n]:
                        new[i] = nu[n][i] + torch.log1p(A * mean) - torch.log1p(A * nu[n][i].exp())
                    else:
                        new[i] = mean.log()
                    # λ ∇s = residual · a
                    parts.append(((s - new[i]).exp() * residual) @ a / len(b))
                nu[n].update(new)
                x_n = x_n - ALPHA * literal.mean(parts)
            ends.append(x_n)
        x = literal.mean(ends)
    return x, nu


def test_it_is_its_description_line_by_line():
    snapshots = []
    trace = run_on(
        "reference",
        SCENT(ALPHA, A),
        CASE,
        PLAN,
        callbacks=[lambda progress: snapshots.append(progress.snapshot())],
    )
    x, nu = scent(Job(SCENT(ALPHA, A), CASE, PLAN))
    assert_close(trace.shared, {"x": x})
    for n, local in snapshots[-1].state["local"].items():
        for i, value in nu[int(n)].items():
            assert_close(local["y"][i].log(), value)


def test_with_a_large_rate_it_is_fcsg():
    fcsg = run_on("reference", FCSG(ALPHA), CASE, PLAN).last
    assert_close(run_on("reference", SCENT(ALPHA, 1e12), CASE, PLAN).last, fcsg, tolerance=1e-9)
    assert gap(run_on("reference", SCENT(ALPHA, A), CASE, PLAN).last, fcsg) > 1e-4


def step(method, known: float, exponent: float):
    """Return y after a step of a client whose y was known, on one example with that ĝ = exp(exponent)."""
    x = torch.zeros(3, dtype=torch.float64)
    loss = PROBLEM.level + PROBLEM.temperature * exponent
    example = Examples(
        torch.zeros(1, 1, 3, dtype=torch.float64), torch.tensor([[math.sqrt(2 * loss)]], dtype=torch.float64)
    )
    local = {"y": torch.full((2,), known, dtype=torch.float64), "seen": torch.ones(2, dtype=torch.bool)}
    oracle = Oracle(PROBLEM, plain, outer_count=2)
    return float(method.step(State({"x": x}, local), oracle, Batch(torch.tensor([1]), example), t=1).local["y"][1])


@pytest.mark.parametrize("known", [0.01, 1.0, 30.0])
def test_it_is_tracking_with_a_weight_by_the_level(known):
    """γ = a y / (1 + a y): the step of SOAP with this weight, which is small where y is."""
    gamma = A * known / (1 + A * known)
    assert step(SCENT(ALPHA, A), known, 1.0) == pytest.approx(step(SOAP(ALPHA, gamma), known, 1.0), rel=1e-12)
    assert step(SCENT(ALPHA, A), known, 1.0) == pytest.approx((1 - gamma) * known + gamma * math.e, rel=1e-12)


def test_a_single_large_value_does_not_spoil_a_small_one():
    """ĝ = e^10 at y = 0.001: SOAP jumps to half of ĝ, while log y moves by log(1 + a ĝ) at most."""
    assert step(SOAP(ALPHA, 0.5), 0.001, 10.0) > 10_000
    found = step(SCENT(ALPHA, A), 0.001, 10.0)
    assert found < 20
    assert math.log(found / 0.001) <= math.log(1 + A * math.exp(10)) + 1e-12


# ------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize("name", FINITE)
def test_other_functions_than_the_logarithm_are_refused(name):
    case = FINITE[name]
    with pytest.raises(FedcsoError, match=rf"SCENT can't be used with {type(case.problem).__name__}: .* λ log y"):
        Job(SCENT(), case, Plan())


def test_outer_samples_that_are_never_the_same_are_refused():
    with pytest.raises(FedcsoError, match="NestedQuadratic never draws the same outer sample twice"):
        Job(SCENT(), CASES["nested_quadratic"], Plan())
