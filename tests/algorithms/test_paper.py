"""The algorithms against literal transcriptions of the papers' pseudocode.

A step of this package is "estimate, then move"; an iteration of the papers is "move, then estimate". With the initial
estimate both give the same sequence: after T steps the state is the paper's x_T and u_T.
"""

from dataclasses import replace

import pytest

from fedcso.algorithms import FCSG, FCSGM, SOX, STEM, AccFCSGM, BSpiderBoost, FedAvg, LocalSCGD, LocalSCGDM, Scaffold
from fedcso.core.plan import Plan
from fedcso.engines import run
from fedcso.engines.job import Job
from tests import transcription as literal
from tests.helpers import (
    Case,
    assert_close,
    classification,
    few_points,
    invariant_logistic,
    nested_quadratic,
)

ALPHA, BETA, GAMMA = 0.1, 0.3, 0.4
PLAN = Plan(rounds=4, local_steps=3, outer_batch=2, inner_batch=3, initial_batch=5)
T, Q = PLAN.total_steps, PLAN.local_steps

QUADRATIC, LOGISTIC, SOFTMAX = nested_quadratic(), invariant_logistic(unlike=0.5), classification()
NESTED = {
    "nested_quadratic": (QUADRATIC, literal.quadratic_gradient),
    "invariant_logistic": (LOGISTIC, literal.logistic_gradient(LOGISTIC.problem)),
}
CHAINS = {
    "nested_quadratic": (QUADRATIC, literal.quadratic_inner, literal.quadratic_chain),
    "invariant_logistic": (LOGISTIC, literal.logistic_inner, literal.logistic_chain(LOGISTIC.problem)),
}
nested = pytest.mark.parametrize(("case", "gradient"), NESTED.values(), ids=NESTED)
chained = pytest.mark.parametrize(("case", "inner", "chain"), CHAINS.values(), ids=CHAINS)


def both(algorithm, case: Case, plan: Plan = PLAN, seed: int = 3, **options):
    """Return a run of the reference engine, its starting point, and its samples."""
    job = Job(algorithm, case, plan, seed)
    trace = run(algorithm, case, plan, seed, **options, engine="reference")
    return trace, job, literal.drawn(job)


@nested
def test_fcsg_is_algorithm_1_blue(case, gradient):
    trace, job, samples = both(FCSG(ALPHA), case)
    x, _ = literal.algorithm_1(job.start(), samples, gradient, T, Q, ALPHA)
    assert_close(trace.shared, {"x": x[T][0]})


@nested
def test_fcsg_m_is_algorithm_1_green(case, gradient):
    trace, job, samples = both(FCSGM(ALPHA, BETA), case)
    x, u = literal.algorithm_1(job.start(), samples, gradient, T, Q, ALPHA, BETA)
    assert_close(trace.shared, {"x": x[T][0], "u": u[T][0]})


@nested
def test_acc_fcsg_m_is_algorithm_2(case, gradient):
    trace, job, samples = both(AccFCSGM(ALPHA, BETA), case)
    x, u = literal.algorithm_2(job.start(), samples, gradient, T, Q, ALPHA, BETA)
    assert_close(trace.shared, {"x": x[T][0], "u": u[T][0]})


@nested
@pytest.mark.parametrize("seed", range(4))
def test_output_is_the_average_iterate_at_a_random_step(case, gradient, seed):
    trace, job, samples = both(AccFCSGM(ALPHA, BETA), case, seed=seed)
    x, _ = literal.algorithm_2(job.start(), samples, gradient, T, Q, ALPHA, BETA)
    averages = [literal.mean(x_t) for x_t in x]
    t = job.output_step() + 1  # {x̄_t}, t = 1..T; our steps count from 0
    assert_close(trace.output, averages[t])


def test_only_the_first_estimate_uses_the_initial_batch():
    _, _, samples = both(FCSG(ALPHA), QUADRATIC)
    assert [len(step[0].xi) for step in samples[:T]] == [PLAN.initial_batch] + [PLAN.outer_batch] * (T - 1)


@pytest.mark.parametrize("weights", ["uniform", "size"])
def test_fedavg_is_local_sgd_with_averaging(weights):
    trace, job, samples = both(FedAvg(ALPHA), SOFTMAX, replace(PLAN, weights=weights))
    sizes = [len(data.labels) if weights == "size" else 1 for data in SOFTMAX.clients]
    start = literal.as_matrix(job.start())
    x = literal.fedavg(start, samples, literal.softmax_gradient, PLAN.rounds, Q, ALPHA, sizes)
    assert_close(literal.as_matrix(trace.last), x)


def test_stem_is_two_sided_momentum():
    trace, job, samples = both(STEM(ALPHA, BETA), SOFTMAX)
    start = literal.as_matrix(job.start())
    x, u = literal.stem(start, samples, literal.softmax_gradient, PLAN.rounds, Q, ALPHA, BETA)
    assert_close(literal.as_matrix(trace.last), x)
    assert_close(literal.as_matrix(trace.shared["u"]), u)


@nested
@pytest.mark.parametrize("participation", [1.0, 2], ids=["everyone", "two"])
def test_scaffold_is_stochastic_controlled_averaging(case, gradient, participation):
    plan = Plan(rounds=5, local_steps=Q, outer_batch=2, inner_batch=3, participation=participation)
    trace, job, samples = both(Scaffold(ALPHA), case, plan)
    participants = [plan.participants(job.seed, r, len(job.clients)) for r in range(plan.rounds)]
    x, c = literal.scaffold(job.start(), samples, gradient, participants, Q, ALPHA)
    assert_close(trace.shared, {"x": x, "c": c})


@chained
def test_local_scgd_tracks_the_inner_value(case, inner, chain):
    trace, job, samples = both(LocalSCGD(ALPHA, GAMMA), case)
    x, y, _ = literal.local_scgdm(job.start(), samples, inner, chain, PLAN.rounds, Q, ALPHA, GAMMA)
    assert_close(trace.shared, {"x": x, "y": y})


@chained
def test_local_scgdm_adds_momentum(case, inner, chain):
    trace, job, samples = both(LocalSCGDM(ALPHA, GAMMA, BETA), case)
    x, y, u = literal.local_scgdm(job.start(), samples, inner, chain, PLAN.rounds, Q, ALPHA, GAMMA, BETA)
    assert_close(trace.shared, {"x": x, "u": u, "y": y})


@chained
@pytest.mark.parametrize("momentum", [None, BETA], ids=["plain", "momentum"])
def test_local_scgd_that_blends_each_is_the_published_code(case, inner, chain, momentum):
    method = LocalSCGDM(ALPHA, GAMMA, BETA, "each") if momentum else LocalSCGD(ALPHA, GAMMA, "each")
    trace, job, samples = both(method, case)
    arguments = (job.start(), samples, inner, chain, PLAN.rounds, Q, ALPHA, GAMMA, momentum or 1.0)
    x, y, u = literal.local_scgdm_of_the_published_code(*arguments)
    assert_close(trace.shared, {"x": x, "u": u, "y": y} if momentum else {"x": x, "y": y})


@pytest.mark.parametrize("participation", [1.0, 2], ids=["everyone", "two"])
def test_sox_tracks_an_inner_value_for_each_outer_sample(participation):
    """With b = 3 of at most 6 points, some are twice in a batch, and most are drawn many times."""
    plan = Plan(rounds=6, local_steps=Q, outer_batch=3, inner_batch=3, initial_batch=5, participation=participation)
    snapshots = []
    case = few_points()
    trace, job, samples = both(
        SOX(ALPHA, GAMMA, BETA), case, plan, callbacks=[lambda progress: snapshots.append(progress.snapshot())]
    )
    participants = [plan.participants(job.seed, r, len(job.clients)) for r in range(plan.rounds)]
    x, u, y = literal.sox(job.start(), samples, participants, Q, ALPHA, GAMMA, BETA)
    assert_close(trace.shared, {"x": x, "u": u})
    kept = snapshots[-1].state["local"]
    assert sorted(map(int, kept)) == [n for n, table in enumerate(y) if table]
    for n, local in kept.items():
        assert local["seen"].tolist() == [i in y[int(n)] for i in range(len(case.clients[int(n)]))]
        for i, tracked in y[int(n)].items():
            assert_close(local["y"][i], tracked)


@nested
def test_bspiderboost_renews_its_gradient_every_period(case, gradient):
    plan = Plan(rounds=10, local_steps=1, outer_batch=2, inner_batch=3)
    method = BSpiderBoost(ALPHA, period=4, large_batch=7)
    trace, job, samples = both(method, replace(case, clients=case.clients[:1]), plan)
    x, u = literal.bspiderboost(job.start(), samples, gradient, plan.rounds, method.period, ALPHA)
    assert_close(trace.shared, {"x": x, "u": u})
