"""The theorems as functions: they imply the corollaries, prescriptions reach ε, and runs stay below the bounds."""

import math
from dataclasses import replace
from itertools import accumulate

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fedcso.core.constants import Constants
from fedcso.core.errors import FedcsoError, InvalidValue, UnknownName
from fedcso.core.streams import START, stream
from fedcso.core.task import Task
from fedcso.engines import run_grid
from fedcso.problems import InvariantLogistic, NestedQuadratic
from fedcso.theory.prescribe import SINGLE_MACHINE, THEOREMS, bound, build_algorithm, prescribe
from tests.helpers import Case

C = Constants(outer_smoothness=0.5, outer_slope=2.0, inner_smoothness=0.1, inner_slope=1.5, inner_noise=0.7, gap=3.0)
S, LL, BIAS = C.smoothness, C.variance, C.bias
FEDERATED = [method for method in THEOREMS if method not in SINGLE_MACHINE]


def total(setting, constants=C):
    return sum(bound(setting, constants).values())


# ------------------------------------------------------- the corollaries, where no rounding is needed


@pytest.mark.parametrize(("clients", "q"), [(2, 3), (4, 2), (3, 1)])
def test_corollary_4_2(clients, q):
    """With q = (T/N³)^¼ and the proof's 78: 12 S_F gap, L²/3 and 13/6 (1 − 1/q) L² over √(NT)."""
    steps = clients**3 * q**4
    setting = replace(THEOREMS["FCSG"].choose(C, clients, 1, steps), inner_batch=5)
    assert (setting.steps, setting.local_steps) == (steps, q)
    assert setting.learning_rate == pytest.approx(math.sqrt(clients / steps) / (6 * S))
    root = math.sqrt(clients * steps)
    expected = (12 * S * C.gap + LL / 3 + 13 / 6 * (1 - 1 / q) * LL) / root + 2 * BIAS / 5
    assert total(setting) == pytest.approx(expected)


@pytest.mark.parametrize(("clients", "q"), [(2, 3), (4, 2), (3, 1)])
def test_corollary_4_5(clients, q):
    """With the proof's 12 the drift is (8/15)(13 + 1/N); 48/5 (with B = 1) and 20/3 are the paper's."""
    steps = clients**3 * q**4
    setting = replace(THEOREMS["FCSG-M"].choose(C, clients, 1, steps), inner_batch=5)
    assert setting.momentum == pytest.approx(5 * S * setting.learning_rate)
    root = math.sqrt(clients * steps)
    drift = 8 / 15 * (13 + 1 / clients) * (1 - 1 / q) * LL
    expected = (12 * S * C.gap + drift + 48 / 5 * LL + 20 / 3 * LL) / root + 4 * BIAS / 5
    assert total(setting) == pytest.approx(expected)


@pytest.mark.parametrize(("clients", "q", "b"), [(2, 3, 1), (4, 2, 1), (3, 5, 2)])
def test_corollary_4_8(clients, q, b):
    """As in the paper, except for L_g² in the last term."""
    steps = clients**2 * q**3
    setting = replace(THEOREMS["Acc-FCSG-M"].choose(C, clients, b, steps), inner_batch=5)
    assert (setting.steps, setting.local_steps, setting.initial_batch) == (steps, q, q)
    assert setting.learning_rate == pytest.approx(1 / (12 * q * S))
    assert setting.momentum == pytest.approx(5 * clients ** (1 / 3) / (24 * steps ** (2 / 3) * b))
    power = (clients * steps) ** (2 / 3)
    last = 5 / (4 * b**2) * C.outer_slope**2 * max(1, C.inner_slope**2)
    expected = (24 * S * C.gap + 72 * b / 5 * LL + 325 / (24 * b**2) * LL + last) / power + 3 * BIAS / 5
    assert total(setting) == pytest.approx(expected)


def test_the_last_term_of_theorem_4_7_is_the_larger_of_two_readings():
    flat = replace(C, inner_slope=0.5)
    setting = THEOREMS["Acc-FCSG-M"].choose(flat, 2, 1, 1000)
    noise = bound(setting, flat)["noise"]
    assert noise == pytest.approx(6 * setting.momentum * flat.outer_slope**2 / 2)


def test_bsgd_is_theorem_4_1_on_one_machine():
    federated = replace(THEOREMS["FCSG"].choose(C, 1, 1, 16), local_steps=1, steps=16)
    assert bound(THEOREMS["BSGD"].choose(C, 1, 1, 16), C) == bound(federated, C)


def test_bspiderboost_spends_as_much_on_large_as_on_small_batches():
    setting = prescribe("BSpiderBoost", C, 1, epsilon=0.05)
    terms = bound(setting, C)
    assert terms["start"] == pytest.approx(2 * C.gap * 2 * S / setting.steps)
    assert terms["noise"] == pytest.approx(2 * LL / setting.initial_batch)
    assert terms["start"] == pytest.approx(terms["noise"], rel=0.01)
    assert setting.period == setting.outer_batch
    assert setting.outer_batch**2 == pytest.approx(setting.initial_batch, rel=0.05)


# ------------------------------------------------------------------------------------ prescriptions

positive = st.floats(0.1, 4)
constants = st.builds(
    Constants,
    outer_smoothness=positive,
    outer_slope=positive,
    inner_smoothness=st.just(0.0) | positive,
    inner_slope=positive,
    inner_noise=st.just(0.0) | positive,
    gap=positive,
)


@pytest.mark.parametrize("method", THEOREMS)
@settings(max_examples=25)
@given(c=constants, clients=st.integers(1, 100), epsilon=st.floats(0.05, 10), b=st.integers(1, 8))
def test_a_prescription_reaches_epsilon_and_wastes_little(method, c, clients, epsilon, b):
    clients = 1 if method in SINGLE_MACHINE else clients
    setting = prescribe(method, c, clients, epsilon=epsilon, outer_batch=b)
    assert total(setting, c) <= epsilon**2
    assert setting.steps % setting.local_steps == 0
    assert setting.rounds * setting.local_steps == setting.steps >= clients
    assert build_algorithm(setting).learning_rate > 0
    if setting.inner_batch > 1:
        fewer = replace(setting, inner_batch=setting.inner_batch - 1)
        assert bound(fewer, c)["bias"] > epsilon**2 / 2
    if setting.steps > 4 * clients:  # the bound jumps where q changes to the next whole number
        shorter = THEOREMS[method].choose(c, clients, b, setting.steps // 2)
        assert total(replace(shorter, inner_batch=setting.inner_batch), c) > epsilon**2


@pytest.mark.parametrize("method", THEOREMS)
@given(steps=st.integers(1, 10**7))
def test_with_a_number_of_steps_bias_and_rest_are_equal(method, steps):
    clients = 1 if method in SINGLE_MACHINE else 4
    assume(steps >= clients)
    terms = bound(setting := prescribe(method, C, clients, steps=steps), C)
    bias = terms.pop("bias")
    assert bias <= sum(terms.values()) * (1 + 1e-9)
    if setting.inner_batch > 1:
        assert bias * setting.inner_batch / (setting.inner_batch - 1) > sum(terms.values())


@pytest.mark.parametrize("method", THEOREMS)
def test_samples_and_rounds_grow_as_proven(method):
    """Compare ε and ε/16, where rounding hardly matters."""
    clients = 1 if method in SINGLE_MACHINE else 2
    coarse, fine = (prescribe(method, C, clients, epsilon=epsilon) for epsilon in (0.02, 0.02 / 16))
    samples, rounds = THEOREMS[method].exponents
    assert math.log(fine.samples / coarse.samples, 16) == pytest.approx(samples, abs=0.1)
    assert math.log(fine.rounds / coarse.rounds, 16) == pytest.approx(rounds, abs=0.1)


@pytest.mark.parametrize("method", FEDERATED)
def test_more_clients_need_proportionally_fewer_steps(method):
    one, many = (prescribe(method, C, clients, epsilon=0.002).steps for clients in (1, 16))
    assert one / many == pytest.approx(16, rel=0.1)


@pytest.mark.parametrize("method", THEOREMS)
def test_the_samples_of_a_setting_are_those_that_a_run_counts(method):
    problem = NestedQuadratic(1)
    clients = problem.centres(1 if method in SINGLE_MACHINE else 3)
    setting = prescribe(method, replace(C, gap=0.01), len(clients), steps=24, outer_batch=2)
    ((trace,),) = run_grid([build_algorithm(setting)], Task(problem, clients), setting.plan())
    assert trace.costs.inner_samples == len(clients) * setting.samples
    assert trace.rows[-1]["step"] == setting.steps


# ----------------------------------------------------------------------------------------- refusals


def test_settings_beyond_the_proofs_are_refused():
    setting = prescribe("FCSG", C, 2, steps=10_000)
    limit = 1 / (6 * setting.local_steps * S)
    assert total(replace(setting, learning_rate=limit)) > 0
    with pytest.raises(InvalidValue, match=rf"learning_rate = .* at most .*Theorem 4.1.*q = {setting.local_steps}"):
        bound(replace(setting, learning_rate=1.001 * limit), C)
    with pytest.raises(InvalidValue, match="local_steps = 0"):
        bound(replace(setting, local_steps=0), C)


@pytest.mark.parametrize("method", ["FCSG-M", "Acc-FCSG-M"])
def test_the_momentum_must_be_that_of_the_proof(method):
    setting = prescribe(method, C, 2, steps=10_000)
    with pytest.raises(InvalidValue, match=r"momentum = 0\.9 .*the value that the proof uses"):
        bound(replace(setting, momentum=0.9), C)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"epsilon": 0.1, "steps": 10}, "epsilon = 0.1 .*left out if steps is given: one of the two, not both"),
        ({"epsilon": 0.0}, "epsilon = 0.0"),
        ({"epsilon": -1.0}, "epsilon = -1.0"),
        ({"epsilon": 1e-8}, "over 10"),
        ({"epsilon": 1e-300}, "over 10"),
        ({"steps": 3}, "steps = 3 .*at least 4"),
        ({"epsilon": 0.1, "outer_batch": 0}, "outer_batch = 0"),
    ],
)
def test_impossible_requests_are_refused_with_the_reason(options, says):
    with pytest.raises(InvalidValue, match=says):
        prescribe("FCSG", C, 4, **options)


def test_an_accuracy_or_a_number_of_steps_is_needed():
    with pytest.raises(FedcsoError, match="epsilon is missing: give the accuracy to reach, or the number of steps"):
        prescribe("FCSG", C, 4)


@pytest.mark.parametrize("method", sorted(SINGLE_MACHINE))
def test_single_machine_methods_take_one_client(method):
    with pytest.raises(InvalidValue, match=f"clients = 2 .*1 for {method}"):
        prescribe(method, C, 2, epsilon=0.1)


def test_other_methods_have_no_theorem_here():
    with pytest.raises(UnknownName, match="did you mean FCSG"):
        prescribe("FCGS", C, 2, epsilon=0.1)


# --------------------------------------------------------------------- measured curves and the bound


def measured(setting, case: Case, seeds: int = 4) -> tuple[list[int], list[float]]:
    """Return numbers of steps t, and the mean of ‖∇F(x̄)‖² over the rounds before t and over seeds."""
    (traces,) = run_grid(
        [build_algorithm(setting)], Task(Fixed(case.problem), case.clients), setting.plan(), list(range(seeds))
    )
    squares = torch.tensor([trace.column("gradient_norm") for trace in traces]).square().mean(0).tolist()
    means = [total / (i + 1) for i, total in enumerate(accumulate(squares))]
    return [int(t) for t in traces[0].column("step")[1:]], means[:-1]


def Fixed(problem):  # noqa: N802 - makes a class's only object
    """Return the problem with the same start for every seed, because the theorems are about one x_0."""

    class FixedStart(type(problem)):
        def init(self, rng):
            return super().init(stream(0, START, 0))

    return FixedStart(**vars(problem))


def cases():
    quadratic = NestedQuadratic(1, noise=0.5)
    logistic = InvariantLogistic(dimension=2, noise=0.5, draw_mean=True, dtype=torch.float64)
    return {
        "quadratic": Case(quadratic, quadratic.centres(4)),
        "logistic": Case(logistic, logistic.clients(4, unlike_truth=0.5)),
    }


@pytest.mark.parametrize(
    ("case", "method", "largest_rate"),
    [
        pytest.param(case, method, largest, id=f"{name}-{method}-{'largest rate' if largest else 'corollary'}")
        for i, method in enumerate(THEOREMS)
        # Every method on both problems and with both rates; which of them meet alternates.
        for j, (name, case) in enumerate(cases().items())
        for largest in [(i + j) % 2 == 0]
    ],
)
def test_the_bound_is_never_violated(case, method, largest_rate):
    """At no step of a run, with the corollary's settings and with the largest step size that the proof allows."""
    if method in SINGLE_MACHINE:
        case = replace(case, clients=case.clients[:1])
    x = case.problem.init(stream(0, START, 0))
    known = case.problem.constants(x, case.clients)
    setting = prescribe(method, known, len(case.clients), steps=200 if method != "BSpiderBoost" else 40)
    if largest_rate:
        rate = THEOREMS[method].largest_rate(known, setting.local_steps)
        momentum = setting.momentum if method not in MOMENTA else MOMENTA[method](rate, known, setting)
        setting = replace(setting, learning_rate=rate, momentum=momentum)
    steps, running = measured(setting, case)
    for t, value in zip(steps, running, strict=True):
        assert value <= total(replace(setting, steps=t), known)
    assert running[-1] < running[0]  # the run makes progress


MOMENTA = {
    "FCSG-M": lambda rate, c, s: 5 * c.smoothness * rate,
    "Acc-FCSG-M": lambda rate, c, s: 30 * (c.smoothness * rate) ** 2 / (s.outer_batch * s.clients),
}
