"""Optimisers at the server: what they reduce to, and FedOpt as its paper prints it."""

import pytest
import torch

from fedcso.algorithms import (
    FCSG,
    FCSGM,
    AccFCSGM,
    FedAdagrad,
    FedAdam,
    FedAvgM,
    FedGLOMO,
    FedYogi,
    LocalSCGDM,
    Scaffold,
    ServerRate,
)
from fedcso.core.errors import InvalidValue
from fedcso.core.plan import Plan
from fedcso.core.schedules import Cosine
from fedcso.engines import run, run_grid
from fedcso.engines.job import Job
from tests import transcription as literal
from tests import transcription_server as server
from tests.helpers import CASES, CLEARLY, assert_close, gap, invariant_logistic, nested_quadratic, run_on

ALPHA, BETA = 0.1, 0.3
PLAN = Plan(rounds=4, local_steps=3, outer_batch=2, inner_batch=3, initial_batch=5)
SINGLE = Plan(rounds=8, local_steps=1, outer_batch=2, inner_batch=3)
LOGISTIC = invariant_logistic(unlike=0.5)
NESTED = {
    "nested_quadratic": (nested_quadratic(), literal.quadratic_gradient),
    "invariant_logistic": (LOGISTIC, literal.logistic_gradient(LOGISTIC.problem)),
}
nested = pytest.mark.parametrize(("case", "gradient"), NESTED.values(), ids=NESTED)
CASE = NESTED["nested_quadratic"][0]
ADAPTIVE = {"adagrad": FedAdagrad, "adam": FedAdam, "yogi": FedYogi}


def last(algorithm, case=CASE, plan=PLAN):
    return run_on("reference", algorithm, case, plan).last


@nested
@pytest.mark.parametrize("kind", ADAPTIVE)
def test_adaptive_servers_are_those_of_the_paper(case, gradient, kind):
    eta, beta_1, beta_2, tau = 0.2, 0.7, 0.8, 0.05
    decay = {} if kind == "adagrad" else {"server_decay": beta_2}
    method = ADAPTIVE[kind](FCSG(ALPHA), eta, beta_1, tau, **decay)
    samples = literal.drawn(job := Job(method, case, PLAN))
    arguments = (job.start(), samples, gradient, PLAN.rounds, PLAN.local_steps, ALPHA)
    expected, *_ = server.fedopt(*arguments, kind, eta, beta_1, beta_2, tau)
    assert_close(last(method, case), expected)
    for other in ADAPTIVE.keys() - {kind}:
        assert gap(server.fedopt(*arguments, other, eta, beta_1, beta_2, tau)[0], expected) > CLEARLY


@pytest.mark.parametrize("base", [FCSG(ALPHA), FCSGM(ALPHA, BETA), AccFCSGM(ALPHA, BETA), Scaffold(ALPHA)])
def test_a_server_rate_of_one_is_the_method_inside(base):
    assert_close(last(ServerRate(base, 1.0)), last(base))
    assert_close(last(FedAvgM(base, 1.0, 0.0)), last(base))
    assert gap(last(ServerRate(base, 0.5)), last(base)) > CLEARLY
    assert gap(last(FedAvgM(base, 1.0, 0.5)), last(base)) > CLEARLY


@pytest.mark.parametrize("engine", ["reference", "stacked", "threads"])
def test_a_falling_server_rate_is_a_falling_learning_rate_if_clients_take_one_step(engine):
    falling = run(ServerRate(FCSG(ALPHA), server_rate=Cosine(0.5)), CASE, SINGLE, engine=engine)
    assert_close(falling.last, run(FCSG(Cosine(0.5 * ALPHA)), CASE, SINGLE, engine="reference").last)
    assert gap(falling.last, run(FCSG(0.5 * ALPHA), CASE, SINGLE).last) > CLEARLY


def test_falling_server_rates_form_a_grid():
    rates = [Cosine(0.5), Cosine(0.2), Cosine(0.4, 3)]
    methods = [FedAdam(FCSGM(ALPHA, BETA), server_rate=rate) for rate in rates]
    for (trace,), method in zip(run_grid(methods, CASE, PLAN, [0]), methods, strict=True):
        assert_close(trace.last, run(method, CASE, PLAN, engine="reference").last)


def test_adam_that_never_learns_is_a_server_rate():
    """With β₁ = 0 and β₂ = 1, √V stays τ."""
    eta, tau = 0.12, 0.1
    fixed = last(ServerRate(FCSGM(ALPHA, BETA), eta / (2 * tau)))
    assert_close(last(FedAdam(FCSGM(ALPHA, BETA), eta, 0.0, tau, 1.0)), fixed)
    assert gap(last(FedAdam(FCSGM(ALPHA, BETA), eta, 0.0, tau, 0.9)), fixed) > CLEARLY


def test_adam_without_memory_takes_steps_of_one_size():
    """With β₁ = β₂ = 0 and τ → 0, every coordinate moves by η_s in the direction of its sign."""
    eta, one_round = 0.2, Plan(rounds=1, local_steps=3)
    start = Job(FCSG(ALPHA), CASE, one_round).start()
    change = last(FCSG(ALPHA), plan=one_round) - start
    assert_close(last(FedAdam(FCSG(ALPHA), eta, 0.0, 1e-300, 0.0), plan=one_round), start + eta * change.sign())


def test_momentum_at_the_server_without_local_steps_is_heavy_ball():
    beta_s, rate = 0.6, 0.5
    samples = literal.drawn(job := Job(FCSG(ALPHA), CASE, SINGLE))
    x, v = job.start(), torch.zeros(3, dtype=torch.float64)
    for batches in samples[: SINGLE.rounds]:
        v = beta_s * v - ALPHA * literal.mean([literal.quadratic_gradient(x, batch) for batch in batches])
        x = x + rate * v
    assert_close(last(FedAvgM(FCSG(ALPHA), rate, beta_s), plan=SINGLE), x)


def test_momentum_at_the_server_without_local_steps_is_fcsg_m_that_starts_from_zero():
    """With β = 1 − β_s and step α η_s / β. The package's FCSG-M differs: it starts with u = G instead of β G."""
    beta_s, rate = 0.6, 0.5
    beta = 1 - beta_s
    step = ALPHA * rate / beta
    samples = literal.drawn(job := Job(FCSG(ALPHA), CASE, SINGLE))
    x, u = job.start(), torch.zeros(3, dtype=torch.float64)
    for batches in samples[: SINGLE.rounds]:
        u = (1 - beta) * u + beta * literal.mean([literal.quadratic_gradient(x, batch) for batch in batches])
        x = x - step * u
    assert_close(last(FedAvgM(FCSG(ALPHA), rate, beta_s), plan=SINGLE), x)
    assert gap(last(FCSGM(step, beta), plan=SINGLE), x) > CLEARLY


@pytest.mark.parametrize("kind", [ServerRate, FedAvgM, *ADAPTIVE.values()])
@pytest.mark.parametrize("base", [FCSGM(ALPHA, BETA), Scaffold(ALPHA), LocalSCGDM(ALPHA)])
def test_only_x_passes_the_optimiser(kind, base):
    """In the first round clients do the same with and without it, so everything else that is shared agrees."""
    one_round = Plan(rounds=1, local_steps=3, outer_batch=2, inner_batch=3)
    with_it, without_it = (
        run(method, CASE, one_round, engine="reference").shared for method in (kind(base, 0.3), base)
    )
    assert with_it.keys() == without_it.keys()
    for name in with_it.keys() - {"x"}:
        assert_close(with_it[name], without_it[name], tolerance=0.0)
    assert gap(with_it["x"], without_it["x"]) > CLEARLY


def test_what_is_sent_is_what_the_method_inside_sends():
    plain, wrapped = (run(one, CASE, PLAN).costs for one in (FCSGM(ALPHA, BETA), FedAdam(FCSGM(ALPHA, BETA))))
    assert plain == wrapped


def test_a_server_that_may_leave_the_set_says_so():
    in_ball, free = CASES["in_ball"].problem, CASES["nested_quadratic"].problem
    assert "FedAdam moves x at the server, where it is not projected" in FedAdam().remark(in_ball)
    assert "FedGLOMO moves x at the server" in FedGLOMO().remark(in_ball)
    assert FedAdam().remark(free) == FedGLOMO().remark(free) == ""


@pytest.mark.parametrize(
    ("kind", "setting", "value", "allowed"),
    [
        (FedAdam, "adaptivity", Cosine(0.1), "a number: only rates can follow a schedule"),
        (FedAdam, "server_rate", 0.0, "a finite number above 0"),
        (FedAdam, "adaptivity", 0.0, "a finite number above 0"),
        (FedYogi, "server_decay", 1.5, r"a number in \[0, 1\]"),
        (FedAvgM, "server_momentum", -0.1, r"a number in \[0, 1\]"),
    ],
)
def test_settings_of_the_server_are_numbers_in_their_range(kind, setting, value, allowed):
    with pytest.raises(InvalidValue, match=f"^{setting} = .* must be {allowed}"):
        kind(**{setting: value})
