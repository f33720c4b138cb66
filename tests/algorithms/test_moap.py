"""MOAP: all tracked values decay at every step; against a literal transcription, and as SOX if all ξ are sampled."""

from dataclasses import replace

import pytest
import torch

from fedcso.algorithms import MOAP, SOX
from fedcso.core.algorithm import State
from fedcso.core.errors import FedcsoError
from fedcso.core.oracle import Oracle
from fedcso.core.plan import Plan
from fedcso.core.problem import Batch
from fedcso.engines import run
from fedcso.engines.job import Job
from fedcso.estimators.plain import plain
from tests import transcription as literal
from tests.helpers import CASES, CLEARLY, Numbered, assert_close, few_points, gap, run_on

ALPHA, GAMMA, BETA = 0.05, 0.4, 0.3
CASE = few_points(sizes=(4,))
POINTS = CASE.clients[0]
X = torch.tensor([2.0, -1.0, 3.0], dtype=torch.float64)


def moap(x_0, samples, participants, counts, q):
    """Transcribe the method on the nested quadratic of few points; return the final x and u, and all y_i.

    All y_i of a client are multiplied by 1 − γ, and γ (n/b) η̄_i ∘ x is added to those of the batch's b different i.
    """
    x, u = x_0, torch.zeros_like(x_0)
    y = [[torch.zeros_like(x_0) for _ in range(count)] for count in counts]
    for r, chosen in enumerate(participants):
        models, directions = [], []
        for n in chosen:
            x_n, u_n = x, u
            for t in range(r * q, (r + 1) * q):
                (numbers, points), mean_eta = samples[t][n].xi, samples[t][n].eta.mean(1)
                factor = counts[n] / len(set(numbers.tolist()))
                y[n] = [(1 - GAMMA) * y_i for y_i in y[n]]
                tracked = [
                    y[n][i] + GAMMA * factor * slope * x_n for i, slope in zip(numbers.tolist(), mean_eta, strict=True)
                ]
                for i, value in zip(numbers.tolist(), tracked, strict=True):
                    y[n][i] = value
                z = literal.mean([e * (y_i - xi) for e, y_i, xi in zip(mean_eta, tracked, points, strict=True)])
                u_n = z if t == 0 else (1 - BETA) * u_n + BETA * z
                x_n = x_n - ALPHA * u_n
            models.append(x_n)
            directions.append(u_n)
        x, u = literal.mean(models), literal.mean(directions)
    return x, u, y


@pytest.mark.parametrize("participation", [1.0, 2], ids=["everyone", "two"])
def test_it_is_its_description_line_by_line(participation):
    case, snapshots = few_points(), []
    plan = Plan(rounds=6, local_steps=3, outer_batch=3, inner_batch=3, initial_batch=5, participation=participation)
    job = Job(MOAP(ALPHA, GAMMA, BETA), case, plan, seed=3)
    trace = run(
        job.algorithm,
        case,
        plan,
        3,
        engine="reference",
        callbacks=[lambda progress: snapshots.append(progress.snapshot())],
    )
    participants = [job.participants(r) for r in range(plan.rounds)]
    x, u, y = moap(job.start(), literal.drawn(job), participants, [len(points) for points in case.clients], 3)
    assert_close(trace.shared, {"x": x, "u": u})
    for n, local in snapshots[-1].state["local"].items():
        assert_close(local, {"y": torch.stack(y[int(n)])})


# ----------------------------------------------------------------------------------------- the table


def step(method, *numbers: int, local=None, eta=None) -> State:
    """Return the state after one step from X on these ξ."""
    number = torch.tensor(numbers)
    eta = torch.ones(len(numbers), 1, 3, dtype=torch.float64) if eta is None else eta
    oracle = Oracle(CASE.problem, plain, outer_count=len(POINTS))
    state = State({"x": X, "u": torch.zeros_like(X)}, local or {})
    return method.step(state, oracle, Batch(Numbered(number, POINTS[number]), eta), t=1)


def test_values_that_are_not_sampled_fade_where_those_of_sox_stay():
    for method, kept in ((MOAP(ALPHA, GAMMA, BETA), 1 - GAMMA), (SOX(ALPHA, GAMMA, BETA), 1.0)):
        before = step(method, 0).local
        after = step(method, 1, 2, local=before).local
        assert_close(after["y"][0], kept * before["y"][0])
        assert before["y"][0].abs().min() > CLEARLY


def test_a_batch_estimates_the_inner_values_of_all_without_bias():
    """Over the four batches of one ξ, the mean of the tables with γ = 1 is ĝ = x in all rows."""
    tables = [step(MOAP(ALPHA, 1.0, BETA), number).local["y"] for number in range(4)]
    assert_close(torch.stack(tables).mean(0), X.expand(4, 3))
    assert_close(tables[0][0], 4 * X)


def test_of_one_that_was_drawn_twice_the_later_value_counts_once():
    eta = torch.tensor([1.0, 5.0, 2.0], dtype=torch.float64).reshape(3, 1, 1).expand(3, 1, 3)
    table = step(MOAP(ALPHA, GAMMA, BETA), 1, 0, 1, eta=eta).local["y"]
    factor = GAMMA * 4 / 2
    assert_close(table, torch.stack([factor * 5 * X, factor * 2 * X, 0 * X, 0 * X]))


# ---------------------------------------------------------------------------------------- reductions


def start_like_sox(t: int) -> float:
    """Return γ; with γ = 1 the first value is ĝ, as that of SOX is."""
    return 1.0 if t == 0 else GAMMA


def test_if_every_step_samples_every_outer_sample_it_is_sox():
    """A batch of 40 draws has both points; one of a single draw has not."""
    case, many = few_points(sizes=(2, 2)), Plan(rounds=3, local_steps=2, outer_batch=40, inner_batch=2)
    one = replace(many, outer_batch=1)
    here, there = MOAP(ALPHA, start_like_sox, BETA), SOX(ALPHA, start_like_sox, BETA)
    assert_close(run_on("reference", here, case, many).shared, run_on("reference", there, case, many).shared)
    assert gap(run_on("reference", here, case, one).last, run_on("reference", there, case, one).last) > CLEARLY


def test_the_table_does_not_travel():
    plan = Plan(rounds=1, local_steps=1)
    assert run_on("reference", MOAP(), few_points(), plan).shared.keys() == {"x", "u"}


def test_outer_samples_that_are_never_the_same_are_refused():
    with pytest.raises(
        FedcsoError, match=r"^MOAP can't .* NestedQuadratic never draws the same outer sample twice; use FCSG-M"
    ):
        Job(MOAP(), CASES["nested_quadratic"], Plan())
