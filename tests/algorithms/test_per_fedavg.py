"""Per-FedAvg and FedMeta against transcriptions on quadratic losses, with all versions of second derivatives."""

from dataclasses import replace

import pytest
import torch

from fedcso.algorithms import FCSG, FedAvg, FedMeta, PerFedAvg
from fedcso.core.errors import FedcsoError, InvalidValue
from fedcso.core.plan import Plan
from fedcso.core.task import Task
from fedcso.datasets import Examples
from fedcso.engines import run
from fedcso.engines.job import Job
from fedcso.estimators import ESTIMATORS
from fedcso.estimators.plain import plain
from fedcso.problems.few_shot_tasks import fix_tasks
from fedcso.problems.personalised import Personalised
from tests import transcription as literal
from tests.command_line import BAD_INPUT, call, folders
from tests.helpers import CASES, CLEARLY, ENGINES, assert_close, gap, personalised, run_on
from tests.least_squares import CLIENTS, LeastSquares, hessian, slope
from tests.problems.test_maml import classes, maml

ALPHA, LAMBDA = 0.2, 0.3
PLAN = Plan(rounds=3, local_steps=3, outer_batch=4, inner_batch=4, participation=2)


def quadratic(**options) -> Task:
    return Task(Personalised(LeastSquares(), LAMBDA, **options), CLIENTS)


def per_fedavg(job, second: str):
    """Transcribe Algorithm 1 of the paper with D'' = D (second = same), D'' independent of D (other), or FO (none)."""
    samples, x = literal.drawn(job), job.start()
    for r in range(job.plan.rounds):
        ends = []
        for n in job.participants(r):
            x_n = x
            for t in job.plan.steps(r):
                batch = samples[t][n]
                support = Examples(*(column[0] for column in batch.eta))
                first, last = (Examples(*(column[rows] for column in support)) for rows in (slice(2), slice(2, None)))
                values, curves = (first, last) if second == "other" else (support, support)
                adapted = x_n - LAMBDA * slope(x_n, values)
                v = slope(adapted, batch.xi)
                x_n = x_n - ALPHA * (v if second == "none" else v - LAMBDA * hessian(curves) @ v)
            ends.append(x_n)
        x = literal.mean(ends)
    return x


VERSIONS = {
    "exact": ({}, "same", "plain"),
    "first-order": ({"first_order": True}, "none", "plain"),
    "Hessian-free": ({"difference": 0.7}, "same", "plain"),
    "independent": ({}, "other", "independent_jacobian"),
}


@pytest.mark.parametrize(("options", "second", "estimator"), VERSIONS.values(), ids=VERSIONS)
@pytest.mark.parametrize("engine", ENGINES)
def test_it_is_its_description_line_by_line(engine, options, second, estimator):
    """L is quadratic: differences of any length are exact, and there is nothing to extrapolate in ∇L."""
    case = quadratic(**options)
    last = run_on(engine, PerFedAvg(ALPHA), case, PLAN, estimator=ESTIMATORS[estimator]).last
    expected = {kind: per_fedavg(Job(PerFedAvg(ALPHA), case, PLAN), kind) for kind in ("same", "other", "none")}
    assert_close(last, expected.pop(second))
    assert all(gap(last, other) > CLEARLY for other in expected.values())


def test_it_is_fcsg():
    case = personalised()
    assert_close(
        run_on("reference", PerFedAvg(ALPHA), case, PLAN).last, run_on("reference", FCSG(ALPHA), case, PLAN).last
    )


def test_with_a_vanishing_rate_of_adaptation_it_is_fedavg():
    still = replace(quadratic(), problem=Personalised(LeastSquares(), 1e-14))
    fedavg = run_on("reference", FedAvg(ALPHA), quadratic(inner_steps=0), PLAN)
    assert_close(run_on("reference", PerFedAvg(ALPHA), still, PLAN).last, fedavg.last)
    assert gap(run_on("reference", PerFedAvg(ALPHA), quadratic(), PLAN).last, fedavg.last) > CLEARLY


def test_it_runs_on_maml_with_one_task_per_client():
    clients = [fix_tasks(1, 3, classes(seed=n), torch.Generator().manual_seed(n)) for n in range(2)]
    plan = Plan(rounds=1, local_steps=2, outer_batch=1, inner_batch=2)
    case = Task(maml(), clients)
    assert_close(run_on("reference", PerFedAvg(0.1), case, plan).last, run_on("reference", FCSG(0.1), case, plan).last)


# --------------------------------------------------------------------------------------------- FedMeta


def test_fedmeta_takes_a_step_along_the_mean_of_meta_gradients():
    plan = replace(PLAN, local_steps=1)
    job = Job(FedMeta(ALPHA), quadratic(), plan)
    samples, x = literal.drawn(job), job.start()
    for r in range(plan.rounds):
        gradients = []
        for n in job.participants(r):
            support = Examples(*(column[0] for column in samples[r][n].eta))
            v = slope(x - LAMBDA * slope(x, support), samples[r][n].xi)
            gradients.append(v - LAMBDA * hessian(support) @ v)
        x = x - ALPHA * literal.mean(gradients)
    assert_close(run(job.algorithm, quadratic(), plan, engine="reference", estimator=plain).last, x)


def test_fedmeta_refuses_local_steps():
    with pytest.raises(InvalidValue, match=r"local_steps = 3 must be 1 for FedMeta.*; for more use Per-FedAvg"):
        Job(FedMeta(), quadratic(), PLAN)


# ------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize("method", [PerFedAvg, FedMeta])
@pytest.mark.parametrize("name", CASES)
def test_a_problem_without_adaptation_is_refused_by_name(method, name):
    case = CASES[name]
    says = f"{'Per-FedAvg' if method is PerFedAvg else 'FedMeta'} can't be used with {type(case.problem).__name__}: "
    with pytest.raises(FedcsoError, match=says + "it needs a problem that adapts models to tasks"):
        Job(method(), case, Plan())


@pytest.mark.parametrize("tasks", [0, 2])
@pytest.mark.parametrize("per_round", [False, True])
def test_more_tasks_than_one_are_refused(tasks, per_round):
    data = fix_tasks(tasks, 3, classes(), torch.Generator()) if tasks else classes()
    with pytest.raises(
        FedcsoError, match="Per-FedAvg needs one task per client, but client 0 has several: use personal"
    ):
        Job(PerFedAvg(), Task(maml(one_task_per_round=per_round), [data]), Plan())


@pytest.mark.parametrize("method", [PerFedAvg, FedMeta])
def test_no_adaptation_in_training_is_refused(method):
    with pytest.raises(
        InvalidValue, match=r"inner_steps = 0 must be at least 1 .*; to train without adaptation, use F"
    ):
        Job(method(), quadratic(inner_steps=0), replace(PLAN, local_steps=1))


def test_it_is_refused_on_the_command_line(tmp_path):
    outcome = call("run", "classification", "--algorithm", "Per-FedAvg", "--out", tmp_path)
    assert outcome.code == BAD_INPUT
    assert outcome.err.startswith("fedcso: Per-FedAvg can't be used with Classification: ")
    assert folders(tmp_path) == []
