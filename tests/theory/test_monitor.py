"""The diagnosis inside a run: columns and costs; and stopping at ε. The same by every engine."""

import math
from dataclasses import replace

import pytest

from fedcso.algorithms import FCSG, FCSGM
from fedcso.core.errors import InvalidValue
from fedcso.core.plan import Plan
from fedcso.core.task import Task
from fedcso.engines import run_grid
from fedcso.engines.job import Job
from fedcso.runs.study import Unit, parts
from fedcso.theory import monitor
from tests.helpers import ENGINES, assert_close, assert_same_run, classification, nested_quadratic, run_on

every_engine = pytest.mark.parametrize("engine", ENGINES)
CASE = nested_quadratic()
PLAN = Plan(rounds=6, local_steps=2, outer_batch=2, inner_batch=2, diagnose_every=3, evaluate_every=2)
COLUMNS = {"bias", "bias_interval", "noise", "gradient_estimate"}


@every_engine
def test_the_columns_are_there_at_the_start_and_every_so_often(engine):
    trace = run_on(engine, FCSG(0.1), CASE, PLAN)
    assert trace.column("round") == [0, 2, 3, 4, 6]
    assert [row["round"] for row in trace.rows if "bias" in row] == [0, 3, 6]
    assert trace.rows[0].keys() >= COLUMNS
    assert all(math.isfinite(trace.rows[0][name]) for name in COLUMNS)


@every_engine
def test_looking_does_not_change_the_run_but_costs(engine):
    looked, not_looked = (run_on(engine, FCSGM(0.1), CASE, replace(PLAN, diagnose_every=k)) for k in (3, 0))
    assert_close(looked.shared, not_looked.shared, tolerance=0.0)
    more = looked.costs.inner_samples - not_looked.costs.inner_samples
    times, outer = 3, monitor.BATCHES * len(CASE.clients)
    assert more == times * outer * 2 * PLAN.inner_batch
    assert looked.costs.outer_samples - not_looked.costs.outer_samples == times * outer


def test_bias_and_noise_are_those_of_the_model_and_of_a_round():
    trace = run_on("reference", FCSG(0.1), CASE, PLAN)
    start = Job(FCSG(0.1), CASE, PLAN).start()
    truth = float(CASE.problem.bias(start, PLAN.inner_batch).norm())
    row = trace.rows[0]
    assert abs(row["bias"] - truth) < 2.5 * row["bias_interval"]
    bare = monitor.look(CASE.problem, start, CASE.clients, [1.0] * 4, replace(PLAN, local_steps=8), 0, 0)
    assert bare.columns["noise"] == pytest.approx(row["noise"] / 2)  # four times as many estimates in a round


@every_engine
def test_only_those_who_take_part_are_asked(engine):
    trace = run_on(engine, FCSG(0.1), CASE, replace(PLAN, participation=2, rounds=1, diagnose_every=1))
    per_look = monitor.BATCHES * 2
    assert trace.costs.outer_samples == 2 * per_look + 2 * 2 * PLAN.outer_batch


def test_engines_agree_on_what_they_find():
    expected = run_on("reference", FCSG(0.05), CASE, PLAN)
    assert_same_run(run_on("threads", FCSG(0.05), CASE, PLAN, workers=2), expected, tolerance=0.0)
    assert_same_run(run_on("stacked", FCSG(0.05), CASE, PLAN), expected, tolerance=1e-9)


@every_engine
def test_an_interrupted_run_looks_where_the_whole_one_does(engine):
    snapshots = []
    whole = run_on(engine, FCSG(0.05), CASE, PLAN, callbacks=[lambda progress: snapshots.append(progress.snapshot())])
    assert_same_run(run_on(engine, FCSG(0.05), CASE, PLAN, start=snapshots[1]), whole, tolerance=0.0)


def test_every_run_of_a_grid_is_diagnosed():
    unit = Unit("FCSG", Task(CASE.problem, CASE.clients), PLAN, [FCSG(0.1)], [0, 1])
    assert len(parts(unit)) == 1
    (traces,) = run_grid([FCSG(0.1)], CASE, PLAN, [0, 1])
    assert traces[0].rows[0]["bias"] != traces[1].rows[0]["bias"]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"diagnose_every": -1}, "diagnose_every = -1"),
        ({"epsilon": -0.1}, "epsilon = -0.1"),
        ({"epsilon": math.inf}, "epsilon = inf"),
    ],
)
def test_plans_are_checked(options, says):
    with pytest.raises(InvalidValue, match=says):
        Plan(**options)


# ---------------------------------------------------------------------------------------------- ε


@every_engine
def test_a_run_stops_when_the_mean_of_its_squared_gradient_norms_is_small(engine):
    plan = Plan(rounds=200, local_steps=2, inner_batch=20, epsilon=1.0)
    trace = run_on(engine, FCSG(0.05), CASE, plan)
    norms = trace.column("gradient_norm")
    means = [math.sqrt(sum(value**2 for value in norms[: n + 1]) / (n + 1)) for n in range(len(norms))]
    assert trace.column("mean_gradient_norm") == pytest.approx(means)
    assert means[-1] <= plan.epsilon < means[-2]
    assert len(norms) < plan.rounds


def test_a_grid_goes_on_until_all_its_runs_are_there():
    plan = Plan(rounds=200, local_steps=2, inner_batch=20, epsilon=1.0)
    traces = run_grid([FCSG(0.1), FCSG(0.02)], CASE, plan)
    assert all(one.rows[-1]["mean_gradient_norm"] <= 1.0 for (one,) in traces)
    assert len({len(one.rows) for (one,) in traces}) == 1


def test_a_stopped_run_is_not_gone_on_with():
    plan, snapshots = Plan(rounds=200, local_steps=2, inner_batch=20, epsilon=1.0), []
    whole = run_on(
        "stacked", FCSG(0.05), CASE, plan, callbacks=[lambda progress: snapshots.append(progress.snapshot())]
    )
    assert_same_run(run_on("stacked", FCSG(0.05), CASE, plan, start=snapshots[-1]), whole, tolerance=0.0)


def test_an_epsilon_without_an_exact_gradient_is_refused():
    case = classification()
    with pytest.raises(InvalidValue, match=r"epsilon = 0.1 .*not known exactly"):
        Job(FCSG(0.1), case, Plan(epsilon=0.1))
