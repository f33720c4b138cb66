"""MSVR: against a literal transcription; without its correction it is SOX, on all ξ it is STORM for each of them."""

from itertools import pairwise

import pytest
import torch

from fedcso.algorithms import FCSGM, MSVR, SOX
from fedcso.core.algorithm import State
from fedcso.core.errors import FedcsoError, InvalidValue
from fedcso.core.oracle import Oracle
from fedcso.core.plan import Plan
from fedcso.core.problem import Batch
from fedcso.engines import run
from fedcso.engines.job import Job
from fedcso.estimators.plain import plain
from tests import transcription as literal
from tests.helpers import CASES, CLEARLY, FewPoints, Numbered, assert_close, few_points, gap, run_on

ALPHA, GAMMA, BETA = 0.02, 0.4, 0.3
PLAN = Plan(rounds=6, local_steps=3, outer_batch=2, inner_batch=3, initial_batch=5)


def msvr(x_0, samples, participants, counts, q):
    """Transcribe the method on the nested quadratic of few points; return the final x and u, and all y_i."""
    x, u = x_0, torch.zeros_like(x_0)
    y = [{} for _ in counts]
    before = [None for _ in counts]
    for r, chosen in enumerate(participants):
        models, directions = [], []
        for n in chosen:
            x_n, u_n = x, u
            for t in range(r * q, (r + 1) * q):
                (numbers, points), mean_eta = samples[t][n].xi, samples[t][n].eta.mean(1)
                b = len(set(numbers.tolist()))
                theta = (counts[n] - b) / (b * (1 - GAMMA)) + (1 - GAMMA)
                x_before = x_n if before[n] is None else before[n]
                tracked = []
                for i, slope in zip(numbers.tolist(), mean_eta, strict=True):
                    here, there = slope * x_n, slope * x_before
                    known = i in y[n]
                    tracked.append((1 - GAMMA) * y[n][i] + GAMMA * here + theta * (here - there) if known else here)
                y[n].update(zip(numbers.tolist(), tracked, strict=True))
                z = literal.mean([e * (y_i - xi) for e, y_i, xi in zip(mean_eta, tracked, points, strict=True)])
                u_n = z if t == 0 else (1 - BETA) * u_n + BETA * z
                before[n], x_n = x_n, x_n - ALPHA * u_n
            models.append(x_n)
            directions.append(u_n)
        x, u = literal.mean(models), literal.mean(directions)
    return x, u, y


@pytest.mark.parametrize("participation", [1.0, 2], ids=["everyone", "two"])
def test_it_is_its_description_line_by_line(participation):
    case, snapshots = few_points(), []
    plan = Plan(rounds=6, local_steps=3, outer_batch=2, inner_batch=3, initial_batch=5, participation=participation)
    job = Job(MSVR(ALPHA, GAMMA, BETA), case, plan, seed=3)
    trace = run(
        job.algorithm,
        case,
        plan,
        3,
        engine="reference",
        callbacks=[lambda progress: snapshots.append(progress.snapshot())],
    )
    participants = [job.participants(r) for r in range(plan.rounds)]
    x, u, y = msvr(job.start(), literal.drawn(job), participants, [len(points) for points in case.clients], 3)
    assert_close(trace.shared, {"x": x, "u": u})
    for n, local in snapshots[-1].state["local"].items():
        assert local["seen"].tolist() == [i in y[int(n)] for i in range(len(case.clients[int(n)]))]
        for i, tracked in y[int(n)].items():
            assert_close(local["y"][i], tracked)


# ---------------------------------------------------------------------------------------- reductions


def last(method, plan=PLAN, case=None):
    return run_on("reference", method, case or few_points(), plan).last


def test_without_the_correction_it_is_sox():
    sox = last(SOX(ALPHA, GAMMA, BETA))
    assert_close(last(MSVR(ALPHA, GAMMA, BETA, correction=0.0)), sox)
    assert gap(last(MSVR(ALPHA, GAMMA, BETA)), sox) > CLEARLY
    assert gap(last(MSVR(ALPHA, GAMMA, BETA, correction=0.5)), last(MSVR(ALPHA, GAMMA, BETA))) > CLEARLY


def test_without_tracking_it_is_fcsg_m():
    """With γ = 1 nothing old remains that could be corrected."""
    fcsg_m = last(FCSGM(ALPHA, BETA))
    assert_close(last(MSVR(ALPHA, tracking=1.0, momentum=BETA)), fcsg_m)
    assert gap(last(MSVR(ALPHA, tracking=0.5, momentum=BETA)), fcsg_m) > CLEARLY


def take_steps(method, batches) -> list[State]:
    """Return the state after each step of a client with three points, from x = (2, −1, 3)."""
    x = torch.tensor([2.0, -1.0, 3.0], dtype=torch.float64)
    states = [State({"x": x, "u": torch.zeros_like(x)})]
    for t, batch in enumerate(batches):
        oracle = Oracle(FewPoints(), plain, outer_count=3)
        states.append(method.step(states[-1], oracle, batch, t))
    return states


def batch_of(numbers: list[int], seed: int, noise: float = 1.0) -> Batch:
    number = torch.tensor(numbers)
    rng = torch.Generator().manual_seed(seed)
    eta = 1 + noise * torch.randn(len(numbers), 2, 3, generator=rng, dtype=torch.float64)
    return Batch(Numbered(number, FewPoints().points((3,))[0][number]), eta)


def test_if_every_step_samples_every_outer_sample_each_has_storm():
    """y_i ← ĝ_i(x_t) + (1 − γ)(y_i − ĝ_i(x_{t−1})), on the same η."""
    batches = [batch_of([0, 1, 2], seed) for seed in range(5)]
    states = take_steps(MSVR(0.1, GAMMA, BETA), batches)
    points = [state.shared["x"] for state in states]
    y = batches[0].eta.mean(1) * points[0]
    for t in range(1, 5):
        slope = batches[t].eta.mean(1)
        y = slope * points[t] + (1 - GAMMA) * (y - slope * points[t - 1])
    assert_close(states[-1].local["y"], y)
    assert gap(take_steps(SOX(0.1, GAMMA, BETA), batches)[-1].local["y"], y) > CLEARLY


def test_tracked_values_follow_the_iterates_more_closely_than_those_of_sox():
    """Without noise in η, the error of y_i is the delay alone; one of three ξ is sampled in each step."""
    order = torch.randint(3, (100,), generator=torch.Generator().manual_seed(0)).tolist()
    batches = [batch_of([number], seed=0, noise=0.0) for number in order]
    errors = {}
    for method in (MSVR(0.01, 0.1, BETA), SOX(0.01, 0.1, BETA)):
        states = take_steps(method, batches)
        pairs = list(pairwise(states))[20:]  # y is that of the x before the move
        errors[type(method)] = sum(float((new.local["y"] - old.shared["x"]).norm()) for old, new in pairs)
    assert errors[MSVR] < errors[SOX] / 2


# ------------------------------------------------------------------------------------------ refusals


def test_a_negative_correction_is_refused():
    with pytest.raises(InvalidValue, match=r"correction = -0\.1 must be a finite number, at least 0"):
        MSVR(correction=-0.1)


def test_only_x_and_u_travel():
    assert run_on("reference", MSVR(), few_points(), Plan(rounds=1, local_steps=1)).shared.keys() == {"x", "u"}


def test_outer_samples_that_are_never_the_same_are_refused():
    with pytest.raises(FedcsoError, match="NestedQuadratic never draws the same outer sample twice; use FCSG-M"):
        Job(MSVR(), CASES["nested_quadratic"], Plan())
