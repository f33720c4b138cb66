"""The diagnosis inside a run: columns, costs, a larger m; and stopping at ε. The same by every engine."""

import math
from dataclasses import replace

import pytest

from fedcso.algorithms import FCSG, FCSGM
from fedcso.core.costs import Costs
from fedcso.core.errors import FedcsoError, InvalidValue
from fedcso.core.plan import Plan
from fedcso.core.task import Task
from fedcso.engines import run_grid
from fedcso.engines.job import Job
from fedcso.estimators.mlmc import rt_mlmc
from fedcso.runs.study import Unit, parts
from fedcso.theory import adaptive
from fedcso.theory.diagnosis import Diagnosis, Magnitude, Size
from tests.helpers import ENGINES, assert_close, assert_same_run, classification, nested_quadratic, run_on

every_engine = pytest.mark.parametrize("engine", ENGINES)
CASE = nested_quadratic()
PLAN = Plan(rounds=6, local_steps=2, outer_batch=2, inner_batch=2, diagnose_every=3, evaluate_every=2)
ADAPTIVE = Plan(rounds=20, local_steps=5, inner_batch=1, diagnose_every=2, inner_batch_most=16)
COLUMNS = {"bias", "bias_interval", "noise", "gradient_estimate", "inner_batch"}


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
    times, outer = 3, adaptive.BATCHES * len(CASE.clients)
    assert more == times * outer * 2 * PLAN.inner_batch
    assert looked.costs.outer_samples - not_looked.costs.outer_samples == times * outer


def test_bias_and_noise_are_those_of_the_model_and_of_a_round():
    trace = run_on("reference", FCSG(0.1), CASE, PLAN)
    start = Job(FCSG(0.1), CASE, PLAN).start()
    truth = float(CASE.problem.bias(start, PLAN.inner_batch).norm())
    row = trace.rows[0]
    assert abs(row["bias"] - truth) < 2.5 * row["bias_interval"]
    bare = adaptive.look(CASE.problem, start, CASE.clients, [1.0] * 4, replace(PLAN, local_steps=8), 0, 0)
    assert bare.columns["noise"] == pytest.approx(row["noise"] / 2)  # four times as many estimates in a round


@every_engine
def test_only_those_who_take_part_are_asked(engine):
    trace = run_on(engine, FCSG(0.1), CASE, replace(PLAN, participation=2, rounds=1, diagnose_every=1))
    per_look = adaptive.BATCHES * 2
    assert trace.costs.outer_samples == 2 * per_look + 2 * 2 * PLAN.outer_batch


# ------------------------------------------------------------------------------------- a larger m


def found(bias: float, gradient: float, m: int = 4) -> Diagnosis:
    exactly = Magnitude(bias, bias, bias)
    return Diagnosis(Magnitude(gradient, gradient, gradient), [Size(m, exactly, exactly)], 1, Costs())


@pytest.mark.parametrize(
    ("most", "bias", "then"), [(None, 9.0, 4), (64, 9.0, 8), (6, 9.0, 6), (4, 9.0, 4), (64, 0.1, 4)]
)
def test_m_doubles_up_to_the_most_where_the_bias_misleads(most, bias, then):
    plan = Plan(inner_batch=4, diagnose_every=1, inner_batch_most=most)
    assert adaptive.next_inner_batch(plan, found(bias, gradient=1.0)) == then


@every_engine
def test_a_run_near_its_biased_optimum_raises_m_and_gets_further(engine):
    adaptive = run_on(engine, FCSG(0.05), CASE, ADAPTIVE)
    fixed = run_on(engine, FCSG(0.05), CASE, replace(ADAPTIVE, inner_batch_most=None))
    sizes = [row["inner_batch"] for row in adaptive.rows if "inner_batch" in row]
    assert sizes == sorted(sizes)
    assert sizes[0] < sizes[-1] <= 16
    assert {row["inner_batch"] for row in fixed.rows if "inner_batch" in row} == {1}
    assert adaptive.rows[-1]["gradient_norm"] < 0.5 * fixed.rows[-1]["gradient_norm"]


def test_engines_agree_on_m():
    expected = run_on("reference", FCSG(0.05), CASE, ADAPTIVE)
    assert_same_run(run_on("threads", FCSG(0.05), CASE, ADAPTIVE, workers=2), expected, tolerance=0.0)
    assert_same_run(run_on("stacked", FCSG(0.05), CASE, ADAPTIVE), expected, tolerance=1e-9)


@every_engine
def test_the_samples_of_every_round_are_counted_with_its_own_m(engine):
    trace = run_on(engine, FCSG(0.05), CASE, ADAPTIVE)
    m, inner = 1, 0
    for row in trace.rows:
        if row["round"]:
            inner += len(CASE.clients) * ADAPTIVE.local_steps * m
        if "inner_batch" in row:
            inner += adaptive.BATCHES * len(CASE.clients) * 2 * m
            m = int(row["inner_batch"])
        assert row["inner_samples"] == inner
    assert m > 1


@every_engine
def test_an_interrupted_run_goes_on_with_its_m(engine):
    snapshots = []
    whole = run_on(
        engine, FCSG(0.05), CASE, ADAPTIVE, callbacks=[lambda progress: snapshots.append(progress.snapshot())]
    )
    middle = snapshots[10]
    assert middle.traces[0].rows[-1]["round"] == 11
    assert "inner_batch" not in middle.traces[0].rows[-1]  # it stands in an earlier one
    assert_same_run(run_on(engine, FCSG(0.05), CASE, ADAPTIVE, start=middle), whole, tolerance=0.0)


def test_runs_with_an_m_of_their_own_are_played_one_by_one():
    with pytest.raises(FedcsoError, match="one at a time"):
        run_grid([FCSG(0.1)], CASE, ADAPTIVE, [0, 1])
    unit = Unit("FCSG", Task(CASE.problem, CASE.clients), ADAPTIVE, [FCSG(0.1)], [0, 1])
    assert len(parts(unit)) == 2
    assert len(parts(replace(unit, plan=PLAN))) == 1


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"diagnose_every": -1}, "diagnose_every = -1"),
        ({"inner_batch_most": 20}, "diagnose_every = 0 .*inner_batch_most"),
        ({"inner_batch_most": 5, "diagnose_every": 1}, "inner_batch_most = 5 .*at least 10"),
        ({"epsilon": -0.1}, "epsilon = -0.1"),
        ({"epsilon": math.inf}, "epsilon = inf"),
    ],
)
def test_plans_are_checked(options, says):
    with pytest.raises(InvalidValue, match=says):
        Plan(**options)


def test_the_largest_m_must_suit_the_estimator():
    plan = Plan(inner_batch=4, diagnose_every=1, inner_batch_most=12)
    with pytest.raises(InvalidValue, match=r"inner_batch = 12 .*a power of 2"):
        Job(FCSG(0.1), CASE, plan, estimator=rt_mlmc)


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
