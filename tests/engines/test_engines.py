"""The three ways to play a round: what they do when numbers break, and how one of them is chosen."""

import sys
from dataclasses import dataclass, replace
from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from fedcso.algorithms import FCSG, FCSGM, Scaffold
from fedcso.core.errors import FedcsoError, InvalidValue, NonFinite, UnknownName
from fedcso.core.estimator import Estimator
from fedcso.core.plan import Plan
from fedcso.core.schedules import Cosine
from fedcso.core.task import Task
from fedcso.core.tree import is_finite
from fedcso.engines import run, run_grid, simulation, stacked, threads
from fedcso.engines.client import DRAW_AHEAD
from fedcso.engines.engine import Engine
from fedcso.engines.job import Job
from fedcso.engines.loop import run_rounds
from fedcso.engines.reference import ClientByClient
from fedcso.engines.stacked import Stacked
from fedcso.engines.work import Work
from fedcso.estimators.plain import plain
from fedcso.problems import Classification, InvariantLogistic, NestedQuadratic
from tests.helpers import (
    CASES,
    CLEARLY,
    ENGINES,
    NEVER,
    SETTINGS,
    TOLERANCE,
    BoxedClock,
    Case,
    Clock,
    assert_close,
    assert_same_run,
    classification,
    differentiated,
    gap,
    invariant_logistic,
    nested_quadratic,
    run_on,
)

every_engine = pytest.mark.parametrize("engine", ENGINES)

PLAN = Plan(rounds=4, local_steps=3, outer_batch=2, inner_batch=3, participation=3)
TICK = FCSG(learning_rate=1.0)
"""The step by which a `Clock` counts."""

# --------------------------------------------------------------------------- who computes, and when


def test_the_order_in_which_clients_are_computed_does_not_matter():
    def backwards(function, items):
        return reversed([function(item) for item in reversed(items)])

    case = nested_quadratic()
    job = Job(FCSGM(0.1, 0.3), case, PLAN)
    expected = run_on("reference", job.algorithm, case, PLAN)
    (trace,) = run_rounds(ClientByClient(job, backwards))
    assert_same_run(trace, expected, tolerance=0.0)


def test_the_number_of_workers_does_not_matter():
    case = classification()
    one, three = (run_on("threads", FCSGM(0.1, 0.3), case, PLAN, workers=workers) for workers in (1, 3))
    assert_same_run(three, one, tolerance=0.0)


@every_engine
def test_a_schedule_without_a_length_lasts_as_long_as_the_run(engine):
    case = nested_quadratic()
    told = run_on(engine, FCSGM(Cosine(0.1, 12), 0.3), case, PLAN)
    assert_same_run(run_on(engine, FCSGM(Cosine(0.1), 0.3), case, PLAN), told, tolerance=0.0)
    assert gap(told.last, run_on(engine, FCSGM(Cosine(0.1, 24), 0.3), case, PLAN).last) > CLEARLY


def test_every_setting_of_a_grid_gets_the_length_of_the_run():
    case = nested_quadratic()
    settings = [FCSGM(Cosine(rate), 0.3) for rate in (0.1, 0.05)]
    for (trace,), method in zip(run_grid(settings, case, PLAN), settings, strict=True):
        assert_same_run(trace, run_on("stacked", method, case, PLAN), tolerance=TOLERANCE)


def test_a_site_gets_the_length_of_the_run():
    assert Work(FCSG(Cosine(0.1)), nested_quadratic().problem, PLAN).algorithm == FCSG(Cosine(0.1, PLAN.total_steps))


@pytest.mark.parametrize("workers", [0, -1, 1.5])
def test_workers_are_a_count(workers):
    with pytest.raises(InvalidValue, match="workers"):
        run_on("threads", FCSG(0.1), nested_quadratic(), PLAN, workers=workers)


@settings(max_examples=15)
@given(
    sizes=st.lists(st.integers(1, 9), min_size=1, max_size=5).map(tuple),
    fraction=st.floats(0, 1, exclude_min=True),
    weights=st.sampled_from(["uniform", "size"]),
    seed=st.integers(0, 2**40),
)
def test_engines_agree_whatever_the_sizes_and_whoever_takes_part(sizes, fraction, weights, seed):
    case = classification(sizes)
    plan = Plan(rounds=2, local_steps=1, outer_batch=2, participation=fraction, weights=weights)
    expected = run_on("reference", Scaffold(0.1), case, plan, seed)
    assert_same_run(run_on("stacked", Scaffold(0.1), case, plan, seed), expected)
    assert expected.participation.total() == sum(
        len(plan.participants(seed, r, len(sizes))) for r in range(plan.rounds)
    )


def test_engines_agree_on_rounds_whose_samples_come_in_portions():
    case, plan = nested_quadratic(), Plan(rounds=2, local_steps=DRAW_AHEAD + 3, inner_batch=2, initial_batch=3)
    expected = run_on("reference", FCSGM(0.02, 0.3), case, plan)
    assert_same_run(run_on("stacked", FCSGM(0.02, 0.3), case, plan), expected)


@every_engine
def test_another_estimator_is_used_if_asked_for(engine):
    @Estimator
    def doubled(problem, x, batch):
        return 2 * differentiated(problem, x, batch)

    case = nested_quadratic()
    twice = run_on(engine, FCSG(0.1), case, PLAN, estimator=doubled)
    assert_close(twice.last, run_on(engine, FCSG(0.2), case, PLAN).last)


@every_engine
def test_single_precision_stays_single_precision(engine):
    problem = InvariantLogistic(dimension=3)
    trace = run_on(engine, Scaffold(0.1), Case(problem, problem.clients(4)), PLAN)
    assert {leaf.dtype for leaf in trace.shared.values()} == {torch.float32}


# -------------------------------------------------------------------------------- many runs at once


def test_schedules_may_vary_in_a_grid():
    case = nested_quadratic()
    variants = [FCSG(lambda t: 0.1 / (1 + t)), FCSG(lambda t: 0.2 / (1 + t)), FCSG(0.05)]
    grid = run_grid(variants, case, PLAN)
    for setting, (trace,) in zip(variants, grid, strict=True):
        assert_same_run(trace, run_on("reference", setting, case, PLAN))


def test_whole_numbers_count_as_real_ones_in_a_grid():
    case = nested_quadratic()
    variants = [FCSGM(0.1, momentum=1), FCSGM(0.1, momentum=0.5)]
    grid = run_grid(variants, case, PLAN)
    for setting, (trace,) in zip(variants, grid, strict=True):
        assert_same_run(trace, run_on("reference", setting, case, PLAN))


def test_all_settings_of_a_grid_see_the_same_samples():
    case = nested_quadratic()
    (one,), (same,), (other,) = run_grid([FCSG(0.1), FCSG(0.1), FCSG(0.2)], case, PLAN)
    assert_same_run(same, one, tolerance=0.0)
    assert gap(other.last, one.last) > CLEARLY


def test_a_diverging_setting_ends_alone():
    case = nested_quadratic()
    fine, wild = [FCSG(0.1), FCSG(0.05)], FCSG(1e100)
    (first,), (broken,), (last,) = run_grid([fine[0], wild, fine[1]], case, PLAN)
    for setting, trace in zip(fine, (first, last), strict=True):
        assert trace.failure is None
        assert_same_run(trace, run_on("reference", setting, case, PLAN))
    with pytest.raises(NonFinite) as alone:
        run_on("reference", wild, case, PLAN)
    assert isinstance(broken.failure, NonFinite)
    assert str(broken.failure) == str(alone.value)
    assert len(broken.rows) < len(first.rows)
    assert is_finite(broken.last)


def test_a_grid_ends_early_if_all_its_settings_diverge():
    case, seen = nested_quadratic(), []
    grid = run_grid(
        [FCSG(1e100), FCSG(1e110)],
        case,
        replace(PLAN, rounds=50),
        callbacks=[lambda progress: seen.append(progress.done)],
    )
    assert all(trace.failure for (trace,) in grid)
    assert len(seen) < 50


def test_an_interrupted_grid_goes_on_to_the_last_bit():
    case, snapshots = nested_quadratic(), []
    arguments = [FCSG(0.1), FCSG(1e40), FCSG(0.05)], case, replace(PLAN, rounds=6)
    whole = run_grid(*arguments, seeds=[0, 1], callbacks=[lambda progress: snapshots.append(progress.snapshot())])
    resumed = run_grid(*arguments, seeds=[0, 1], start=snapshots[3])
    assert [[str(trace.failure) for trace in row] for row in resumed] == [
        [str(trace.failure) for trace in row] for row in whole
    ]
    for row, expected_row in zip(resumed, whole, strict=True):
        for trace, expected in zip(row, expected_row, strict=True):
            assert_same_run(trace, expected, tolerance=0.0)


# --------------------------------------------------------------------------- numbers that break

BREAKS_AT = 3
CLOCK_PLAN = Plan(rounds=4, local_steps=2)
ROUND = BREAKS_AT // CLOCK_PLAN.local_steps


def clock(problem: Clock) -> Case:
    return Case(problem, clients=[NEVER, float(BREAKS_AT), NEVER])


CLOCKS = {
    "loss": clock(Clock(breaks="loss")),
    "gradient": clock(Clock(breaks="gradient")),
    "gradient, hidden by a projection": clock(BoxedClock(breaks="gradient")),
}


@every_engine
def test_a_clock_counts_steps(engine):
    healthy = Case(Clock(), clients=[NEVER, NEVER])
    assert run_on(engine, TICK, healthy, CLOCK_PLAN).last.tolist() == [CLOCK_PLAN.total_steps]


@every_engine
@pytest.mark.parametrize("case", CLOCKS.values(), ids=CLOCKS)
def test_a_number_that_breaks_stops_the_run_and_is_named(engine, case):
    with pytest.raises(NonFinite) as caught:
        run_on(engine, TICK, case, CLOCK_PLAN, seed=7)
    reason = caught.value
    assert reason.quantity == case.problem.breaks
    assert (reason.client, reason.round, reason.step, reason.seed) == (1, ROUND, BREAKS_AT, 7)
    message = f"non-finite {reason.quantity} at client 1, round {ROUND}, step {BREAKS_AT} (seed 7)"
    assert message in str(reason)


@every_engine
@pytest.mark.parametrize(
    ("case", "name"), [(nested_quadratic(), "x"), (classification(), "x.weight")], ids=["vector", "network"]
)
def test_an_update_that_breaks_after_the_last_gradient_is_named(engine, case, name):
    """Loss and gradient at x_0 are moderate; only the step from there overflows."""
    huge = FCSG(learning_rate=sys.float_info.max)
    with pytest.raises(NonFinite) as caught:
        run_on(engine, huge, case, Plan(rounds=2, local_steps=1))
    assert caught.value.quantity == f"update of {name}"
    assert (caught.value.client, caught.value.round, caught.value.step) == (0, 0, 0)


@every_engine
@pytest.mark.parametrize("case", CLOCKS.values(), ids=CLOCKS)
def test_a_client_that_breaks_can_be_left_out(engine, case):
    trace = run_on(engine, TICK, case, replace(CLOCK_PLAN, on_nonfinite="drop"))
    # From its time on the client breaks in every round, at the first step that is late enough.
    expected = [(1, r, max(BREAKS_AT, CLOCK_PLAN.steps(r)[0])) for r in range(ROUND, CLOCK_PLAN.rounds)]
    assert [(reason.client, reason.round, reason.step) for reason in trace.dropped] == expected
    assert {reason.quantity for reason in trace.dropped} == {case.problem.breaks}
    assert trace.last.tolist() == [CLOCK_PLAN.total_steps]
    assert all(row["train_loss"] <= 0 for row in trace.rows[1:])


@every_engine
def test_what_a_dropped_client_would_have_sent_is_not_counted(engine):
    trace = run_on(engine, TICK, CLOCKS["loss"], replace(CLOCK_PLAN, on_nonfinite="drop"))
    replies = 3 * CLOCK_PLAN.rounds - len(trace.dropped)
    one_number = 8
    assert trace.costs.bytes_up == replies * one_number
    assert trace.costs.bytes_down == 3 * CLOCK_PLAN.rounds * one_number
    assert trace.costs.gradients == replies * CLOCK_PLAN.local_steps


@every_engine
def test_nobody_left_is_an_error_that_says_so(engine):
    case = Case(Clock(), clients=[float(BREAKS_AT)] * 2)
    with pytest.raises(FedcsoError, match=f"round {ROUND}: all participating clients were dropped.*loss"):
        run_on(engine, TICK, case, replace(CLOCK_PLAN, on_nonfinite="drop"))


def test_a_setting_of_a_grid_may_be_left_with_nobody():
    case = Case(Clock(), clients=[float(BREAKS_AT)] * 2)
    plan = replace(CLOCK_PLAN, on_nonfinite="drop")
    (slow,), (fast,) = run_grid([FCSG(0.1), TICK], case, plan)
    assert slow.failure is None
    assert abs(float(slow.last) - 0.1 * plan.total_steps) < TOLERANCE
    assert "all participating clients were dropped" in str(fast.failure)


# ------------------------------------------------------------------------------- choosing an engine


@dataclass(frozen=True)
class LooksAtValues(NestedQuadratic):
    """A forward pass that branches on a number, which can't be done for many clients at once."""

    broadcasts = False

    def outer(self, y, xi):
        losses = super().outer(y, xi)
        return losses if losses.sum() >= 0 else -losses


def chosen(case: Case, estimator: Estimator = plain) -> Engine:
    return simulation.choose(Job(SETTINGS["FCSG"], case, PLAN, estimator=estimator))


@pytest.mark.parametrize("name", CASES)
def test_small_models_are_stacked(name):
    case = CASES[name]
    assert chosen(case) is stacked.ENGINE


def test_large_models_get_threads():
    inputs = simulation.STACK_AT_MOST
    case = classification(features=inputs)
    large = Classification(partial(nn.Linear, inputs, 3, dtype=torch.float64))
    assert chosen(Task(large, case.clients)) is threads.ENGINE


def test_what_can_not_be_batched_gets_threads():
    problem = LooksAtValues()
    assert chosen(Task(problem, problem.centres(3))) is threads.ENGINE


def test_an_estimator_that_can_not_be_batched_gets_threads():
    @Estimator
    def looks_at_values(problem, x, batch):
        losses = differentiated(problem, x, batch)
        return losses if losses.sum() >= 0 else -losses

    case = nested_quadratic()
    assert chosen(case, looks_at_values) is threads.ENGINE
    assert chosen(case, differentiated) is stacked.ENGINE


def engine_of(engine: str, case: Case) -> type:
    """Which rounds a simulation really plays."""
    seen = []
    run(
        FCSG(0.1),
        case,
        Plan(rounds=1, local_steps=1),
        callbacks=[lambda progress: seen.append(type(progress.rounds))],
        engine=engine,
    )
    return seen[0]


def test_the_choice_can_be_forced():
    small = nested_quadratic()
    assert engine_of("simulation", small) is Stacked
    assert engine_of("stacked", small) is Stacked
    assert engine_of("threads", small) is ClientByClient


def test_an_unknown_engine_is_refused():
    with pytest.raises(UnknownName, match=r"unknown engine 'gpu'.*simulation"):
        engine_of("gpu", nested_quadratic())


@pytest.mark.parametrize("engine", ["simulation", "stacked", "threads"])
def test_a_simulation_is_the_run_it_simulates(engine):
    case = invariant_logistic()
    trace = run(FCSGM(0.1, 0.3), case, PLAN, 5, engine=engine)
    assert_same_run(trace, run_on("reference", FCSGM(0.1, 0.3), case, PLAN, 5))
