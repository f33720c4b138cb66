"""What is the same for all engines: evaluation between rounds, iterates to report, going on, refusing."""

import math
from dataclasses import replace

import pytest
import torch

from fedcso.algorithms import BSGD, FCSG, FCSGM, BSpiderBoost
from fedcso.core.errors import InvalidValue
from fedcso.core.estimator import Estimator
from fedcso.core.judge import Judge
from fedcso.core.metric import Metric
from fedcso.core.plan import Plan
from fedcso.core.task import Task
from fedcso.engines import run_grid
from fedcso.engines.job import Job
from fedcso.engines.snapshot import from_bytes, to_bytes
from fedcso.problems import InvariantLogistic
from fedcso.problems.invariant_logistic import ACCURACY, measure_accuracy
from tests.helpers import (
    ENGINES,
    NEVER,
    Case,
    Clock,
    assert_close,
    assert_same_run,
    classification,
    in_ball,
    invariant_logistic,
    nested_quadratic,
    run_on,
)

every_engine = pytest.mark.parametrize("engine", ENGINES)

# -------------------------------------------------------------------------------------- evaluation


@every_engine
def test_evaluation_comes_at_the_start_then_every_so_often_and_at_the_end(engine):
    plan = Plan(rounds=5, local_steps=2, evaluate_every=2)
    trace = run_on(engine, FCSG(0.1), nested_quadratic(), plan)
    assert trace.column("round") == [0, 2, 4, 5]
    assert trace.column("step") == [0, 4, 8, 10]


@every_engine
def test_how_often_is_evaluated_does_not_change_the_run(engine):
    case = nested_quadratic()
    often, rarely = (
        run_on(engine, FCSG(0.1), case, Plan(rounds=5, local_steps=2, evaluate_every=every)) for every in (1, 3)
    )
    assert_close(rarely.shared, often.shared, tolerance=0.0)
    assert rarely.costs == often.costs


@every_engine
def test_rows_hold_the_exact_loss_and_gradient_norm_where_known(engine):
    case = nested_quadratic()
    trace = run_on(engine, FCSG(0.1), case, Plan(rounds=3, local_steps=2))
    value, gradient = case.problem.exact(trace.last, case.clients, [1.0] * len(case.clients))
    assert math.isclose(trace.rows[-1]["loss"], value)
    assert math.isclose(trace.rows[-1]["gradient_norm"], gradient.norm())


@every_engine
def test_train_loss_is_the_mean_over_the_steps_of_the_round(engine):
    """With single ξ, one step and one client a round it is F̂ at the model before."""
    case = nested_quadratic(clients=1)
    losses = []

    @Estimator
    def remember(problem, x, batch):
        values = 0.5 * (batch.eta.mean(-2) * x - batch.xi).square().sum(-1)
        losses.append(values.detach())
        return values

    plan = Plan(rounds=3, local_steps=2, outer_batch=1)
    trace = run_on("reference", FCSG(0.1), case, plan, estimator=remember)
    steps = torch.stack(losses).reshape(plan.rounds, plan.local_steps)
    assert math.isnan(trace.rows[0]["train_loss"])
    assert trace.column("train_loss")[1:] == pytest.approx(steps.mean(1).tolist())
    same = run_on(engine, FCSG(0.1), case, plan)
    assert same.column("train_loss")[1:] == pytest.approx(steps.mean(1).tolist())


@every_engine
def test_costs_in_rows_grow_to_those_of_the_run(engine):
    trace = run_on(engine, FCSG(0.1), nested_quadratic(), Plan(rounds=3, local_steps=2))
    totals = {name: count for name, count in trace.costs.as_dict().items() if name != "rounds"}
    assert {name: trace.rows[-1][name] for name in totals} == totals
    assert {name: trace.rows[0][name] for name in totals} == dict.fromkeys(totals, 0)
    assert trace.column("round") == [0, 1, 2, trace.costs.rounds]


# --------------------------------------------------------------------------- iterates to report


def models_of(engine, algorithm, case, plan) -> tuple:
    """The trace of a run and all models it went through, the start included."""
    models = [Job(algorithm, case, plan).start()]
    trace = run_on(engine, algorithm, case, plan, callbacks=[lambda now: models.append(now.traces[0].last)])
    return trace, models


@every_engine
def test_best_is_the_model_of_least_loss(engine):
    """Steps that are small at first and far too large in the end: the best model is one in between."""
    sensible, far_too_large = 0.1, 2.0
    method = FCSG(lambda t: sensible if t < 5 else far_too_large)
    trace, models = models_of(engine, method, nested_quadratic(), Plan(rounds=8, local_steps=1))
    losses = trace.column("loss")
    assert 0 < losses.index(min(losses)) < 8
    assert_close(trace.best, models[losses.index(min(losses))], tolerance=0.0)


@every_engine
def test_best_is_the_first_model_of_highest_accuracy_on_validation_data(engine):
    problem = InvariantLogistic(dimension=3, dtype=torch.float64)
    sources = problem.clients(4)
    judge = Judge(measure_accuracy, [ACCURACY], broadcasts=True)
    test, validation = (problem.test_points(sources, number=30, seed=seed) for seed in (0, 1))
    case = Case(problem, sources, test, validation, judge)
    trace, models = models_of(engine, FCSG(0.5), case, Plan(rounds=8, local_steps=1, inner_batch=1))
    accuracies = trace.column("validation_accuracy")
    assert_close(trace.best, models[accuracies.index(max(accuracies))], tolerance=0.0)


COUNTING = Clock()
"""x counts the rounds."""


def counted(judge, **held_out):
    """A run of 4 rounds in which x is the number of rounds done, and the round whose model was chosen."""
    trace = run_on(
        "reference", FCSG(1.0), Task(COUNTING, [NEVER], judge=judge, **held_out), Plan(rounds=4, local_steps=1)
    )
    return trace, int(trace.best)


@pytest.mark.parametrize(("higher", "chosen"), [(True, 3), (False, 1)])
def test_a_judges_own_metric_is_best_where_it_says_so(higher, chosen):
    """f1 is 0.5, 0.2, 0.6, 0.9, 0.4: kept is the highest if higher is better, and the lowest if it is an error."""
    values = [0.5, 0.2, 0.6, 0.9, 0.4]
    judge = Judge(lambda x, data: {"f1": values[int(x)]}, [Metric("f1", higher_is_better=higher)], select="f1")
    trace, best = counted(judge, validation="validation")
    assert trace.column("validation_f1") == values
    assert best == chosen


def test_validation_data_choose_where_test_data_would_choose_otherwise():
    values = {"test": [0.1, 0.9, 0.2, 0.3, 0.4], "validation": [0.1, 0.2, 0.3, 0.8, 0.4]}
    judge = Judge(lambda x, data: {"f1": values[data][int(x)]}, [Metric("f1", higher_is_better=True)])
    trace, best = counted(judge, test="test", validation="validation")
    assert (trace.column("f1"), trace.column("validation_f1")) == (values["test"], values["validation"])
    assert best == 3


def test_test_data_choose_nothing_where_there_are_no_validation_data():
    """The training loss −x is least in the end; on test data the model after round 1 is best."""
    judge = Judge(lambda x, data: {"f1": -abs(float(x) - 1)}, [Metric("f1", higher_is_better=True)])
    trace, best = counted(judge, test="test")
    assert trace.column("f1").index(max(trace.column("f1"))) == 1
    assert best == 4


def test_what_is_not_declared_chooses_nothing():
    judge = Judge(lambda x, data: {"f1": -abs(float(x) - 1)})
    trace, best = counted(judge, validation="validation")
    assert "validation_f1" in trace.rows[0]
    assert best == 4


def test_while_validation_is_undefined_the_newest_model_counts():
    def judge(*values):
        return Judge(lambda x, data: {"f1": values[int(x)]}, [Metric("f1", higher_is_better=True)])

    assert counted(judge(*[math.nan] * 5), validation="validation")[1] == 4
    assert counted(judge(math.nan, math.nan, 0.3, math.nan, 0.2), validation="validation")[1] == 2


@pytest.mark.parametrize("done", [1, 2, 3])
def test_a_run_that_goes_on_knows_what_it_has_chosen(done):
    values = [0.1, 0.2, 0.9, 0.3, 0.4]
    judge = Judge(lambda x, data: {"f1": values[int(x)]}, [Metric("f1", higher_is_better=True)])
    task, plan, snapshots = Task(COUNTING, [NEVER], validation="v", judge=judge), Plan(rounds=4, local_steps=1), []
    whole = run_on(
        "reference", FCSG(1.0), task, plan, callbacks=[lambda progress: snapshots.append(progress.snapshot())]
    )
    again = from_bytes(to_bytes(snapshots[done - 1]))
    assert_same_run(run_on("reference", FCSG(1.0), task, plan, start=again), whole, tolerance=0.0)
    assert int(whole.best) == 2


@every_engine
def test_best_is_by_train_loss_if_nothing_else_is_known(engine):
    case = replace(classification(), test=None)
    trace, models = models_of(engine, FCSG(0.5), case, Plan(rounds=8, local_steps=1))
    losses = trace.column("train_loss")
    assert_close(trace.best, models[losses.index(min(losses[1:]))], tolerance=0.0)


@every_engine
def test_last_is_the_model_after_the_last_round(engine):
    trace, models = models_of(engine, FCSGM(0.1), nested_quadratic(), Plan(rounds=3, local_steps=2))
    assert_close(trace.last, models[-1], tolerance=0.0)
    assert_close(trace.shared["x"], models[-1], tolerance=0.0)


def test_the_output_step_is_uniform():
    case, plan, seeds = nested_quadratic(), Plan(rounds=2, local_steps=3), 1200
    steps = [Job(FCSG(), case, plan, seed).output_step() for seed in range(seeds)]
    p = 1 / plan.total_steps
    for t in range(plan.total_steps):
        assert abs(steps.count(t) - seeds * p) < 4 * math.sqrt(seeds * p * (1 - p))
    assert set(steps) == set(range(plan.total_steps))


@every_engine
def test_output_is_the_average_of_the_clients_in_the_middle_of_a_round(engine):
    """Seen at the end of a run that is cut off there."""
    case, plan = nested_quadratic(), Plan(rounds=1, local_steps=6)
    for seed in range(4):
        trace = run_on(engine, FCSG(0.1), case, plan, seed)
        t = Job(FCSG(0.1), case, plan, seed).output_step()
        cut_off = FCSG(lambda step, t=t: 0.1 if step <= t else 1e-300)
        assert_close(trace.output, run_on(engine, cut_off, case, plan, seed).last)


@every_engine
def test_the_random_iterate_is_evaluated(engine):
    case, plan = nested_quadratic(), Plan(rounds=5, local_steps=4, evaluate_every=5)
    for seed in range(3):
        job = Job(FCSG(0.1), case, plan, seed)
        trace = run_on(engine, FCSG(0.1), case, plan, seed)
        t = job.output_step()
        (expected,) = job.evaluate([trace.output])
        assert trace.output_row == pytest.approx({"round": t // 4 + 1, "step": t + 1} | expected, rel=1e-12)


def test_in_a_grid_every_run_has_its_own_random_iterate():
    case, plan, seeds = nested_quadratic(), Plan(rounds=5, local_steps=4, evaluate_every=5), [0, 1, 2]
    traces = run_grid([FCSG(0.1), FCSG(0.02)], case, plan, seeds)
    for algorithm, setting in zip([FCSG(0.1), FCSG(0.02)], traces, strict=True):
        for seed, trace in zip(seeds, setting, strict=True):
            alone = run_on("reference", algorithm, case, plan, seed)
            assert trace.output_row == pytest.approx(alone.output_row, rel=1e-12)


def test_a_run_that_breaks_off_before_its_random_step_has_no_random_iterate():
    task, plan = Task(COUNTING, [3.0]), Plan(rounds=5, local_steps=1)
    late = next(seed for seed in range(100) if Job(FCSG(1.0), task, plan, seed).output_step() == 4)
    (((trace,),)) = run_grid([FCSG(1.0)], task, plan, [late], engine="reference")
    assert trace.failure is not None
    assert trace.output is None
    assert trace.output_row == {}


def test_the_start_lies_in_the_set():
    case = in_ball()
    for seed in range(5):
        start = Job(FCSG(), case, Plan(), seed).start()
        assert start.norm() <= case.problem.radius * (1 + 1e-15)


# ---------------------------------------------------------------------------------------- going on


@every_engine
def test_progress_is_told_after_every_round(engine):
    seen = []
    run_on(engine, FCSG(0.1), nested_quadratic(), Plan(rounds=3), callbacks=[lambda now: seen.append(now.done)])
    assert seen == [1, 2, 3]


@every_engine
def test_a_snapshot_may_be_gone_on_from_more_than_once(engine):
    case, plan, snapshots = nested_quadratic(), Plan(rounds=4, local_steps=2), []
    whole = run_on(engine, FCSGM(0.1), case, plan, callbacks=[lambda progress: snapshots.append(progress.snapshot())])
    for _ in range(2):
        assert_same_run(run_on(engine, FCSGM(0.1), case, plan, start=snapshots[1]), whole, tolerance=0.0)


@every_engine
def test_a_snapshot_does_not_move_with_the_run(engine):
    snapshots = []
    run_on(
        engine,
        FCSGM(0.1),
        nested_quadratic(),
        Plan(rounds=4, local_steps=2),
        callbacks=[lambda progress: snapshots.append(progress.snapshot())],
    )
    for done, snapshot in enumerate(snapshots, start=1):
        (trace,) = snapshot.traces
        assert snapshot.done == done == trace.costs.rounds
        assert trace.column("round") == list(range(done + 1))


@every_engine
def test_a_finished_run_has_nothing_left_to_do(engine):
    case, plan, snapshots = nested_quadratic(), Plan(rounds=2, local_steps=2), []
    whole = run_on(engine, FCSGM(0.1), case, plan, callbacks=[lambda progress: snapshots.append(progress.snapshot())])
    assert_same_run(run_on(engine, FCSGM(0.1), case, plan, start=snapshots[-1]), whole, tolerance=0.0)


# ----------------------------------------------------------------------------------------- refusing


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("method", [BSGD(), BSpiderBoost()])
def test_methods_of_one_machine_refuse_a_federation(engine, method):
    with pytest.raises(InvalidValue, match=r"clients = 4.*1 for BS.*pool the data first"):
        run_on(engine, method, nested_quadratic(clients=4), Plan(local_steps=1))
    with pytest.raises(InvalidValue, match=r"local_steps = 2.*1 for BS.*no local steps"):
        run_on(engine, method, nested_quadratic(clients=1), Plan(local_steps=2))


@every_engine
def test_more_participants_than_clients_are_refused(engine):
    with pytest.raises(InvalidValue, match=r"participation = 5.*at most 4, the number of clients"):
        run_on(engine, FCSG(), nested_quadratic(clients=4), Plan(participation=5))


@every_engine
def test_a_run_without_clients_is_refused(engine):
    with pytest.raises(InvalidValue, match=r"clients = 0.*at least one"):
        run_on(engine, FCSG(), replace(nested_quadratic(), clients=[]), Plan())


@pytest.mark.parametrize("seed", [-1, 0.5, "one"])
@every_engine
def test_a_seed_is_a_whole_number(engine, seed):
    with pytest.raises(InvalidValue, match=f"seed = {seed!r}.*a whole number, at least 0"):
        run_on(engine, FCSG(), nested_quadratic(), Plan(), seed)


def test_clients_may_count_by_size():
    case = classification(sizes=(2, 6))
    by_size = Job(FCSG(), case, Plan(weights="size"))
    alike = Job(FCSG(), case, Plan(weights="uniform"))
    assert by_size.weights([0, 1]) == [2, 6]
    assert alike.weights([0, 1]) == [1, 1]


def test_a_distribution_has_no_size():
    for case in (nested_quadratic(clients=2), invariant_logistic(clients=2)):
        job = Job(FCSG(), case, Plan(weights="size"))
        assert job.weights([0, 1]) == [1, 1]


# ------------------------------------------------------------------------------------ stopping early

SCORE = Metric("score", higher_is_better=True)


def judged_by_distance(case, best_at):
    """Return the case with validation data, on which models are best when they have moved so far from the start."""
    start = case.starting_point(torch.Generator())

    def score(x, far):
        return {"score": -abs(float((x - start).norm()) - far)}

    return replace(case, validation=best_at, test=None, judge=Judge(score, [SCORE]))


def drifting(best_at=3.0):
    """Return a case whose x moves by 1 in each step of a client, and what is best for it."""
    return judged_by_distance(Case(Clock(), [NEVER, NEVER]), best_at)


@every_engine
@pytest.mark.parametrize("patience", [1, 2])
def test_a_run_stops_when_its_patience_is_over(engine, patience):
    plan = Plan(rounds=12, local_steps=1, patience=patience)
    trace = run_on(engine, FCSG(1.0), drifting(), plan)
    assert trace.column("round") == list(range(4 + patience))
    assert trace.rows[3]["validation_score"] == 0.0
    assert_close(trace.best, run_on(engine, FCSG(1.0), drifting(), Plan(rounds=3, local_steps=1)).last, tolerance=0.0)
    assert trace.costs.rounds == 3 + patience


def test_patience_counts_evaluations_not_rounds():
    trace = run_on("reference", FCSG(1.0), drifting(4.0), Plan(rounds=20, local_steps=1, evaluate_every=2, patience=2))
    assert trace.column("round") == [0, 2, 4, 6, 8]


def test_in_a_grid_each_run_stops_by_itself():
    plan = Plan(rounds=12, local_steps=1, patience=2)
    methods = [FCSG(1.0), FCSG(0.5)]
    for (together,), method in zip(run_grid(methods, drifting(), plan), methods, strict=True):
        assert_same_run(together, run_on("stacked", method, drifting(), plan), tolerance=0.0)
    assert [len(run[0].rows) for run in run_grid(methods, drifting(), plan)] == [6, 9]


@pytest.mark.parametrize("stop", [2, 4, 5, 7])
def test_resuming_does_not_change_when_it_stops(stop):
    plan, methods, kept = Plan(rounds=12, local_steps=1, patience=2), [FCSG(1.0), FCSG(0.5)], []

    def keep(progress):
        if progress.done == stop:
            kept.append(from_bytes(to_bytes(progress.snapshot())))

    whole = run_grid(methods, drifting(), plan, callbacks=[keep])
    again = run_grid(methods, drifting(), plan, start=kept[0])
    for (resumed,), (trace,) in zip(again, whole, strict=True):
        assert_same_run(resumed, trace, tolerance=0.0)


def test_patience_needs_validation_data():
    with pytest.raises(InvalidValue, match="patience = 3 must be 0: there are no validation data"):
        run_on("reference", FCSG(1.0), nested_quadratic(), Plan(rounds=2, patience=3))
