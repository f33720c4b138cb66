"""Counted costs against costs computed by hand."""

from collections import Counter
from dataclasses import dataclass, replace

import pytest
import torch

from fedcso.algorithms import FCSG
from fedcso.core.costs import Costs
from fedcso.core.plan import Plan
from fedcso.core.tree import nbytes
from fedcso.problems import InvariantLogistic
from tests.helpers import (
    ENGINES,
    SADDLES,
    SETTINGS,
    Case,
    cases_for,
    classification,
    engines_for,
    few_points,
    for_method,
    nested_quadratic,
    run_on,
)

CASE, FINITE = nested_quadratic(clients=3), few_points(sizes=(2, 3, 4))
PLAN = Plan(rounds=2, local_steps=4, outer_batch=2, inner_batch=3, initial_batch=5)
VECTOR = CASE.problem.dimension * 8
"""Bytes of x in float64; u, c and y are as large."""


@dataclass(frozen=True)
class Bill:
    """The costs of one method: evaluations of ∇F̂ per ξ after the first step, and vectors per message."""

    gradients: int
    sends: int
    missing_at_first: int = 0
    """The number of vectors that the server's first message does not contain yet."""
    gradients_at_first: int = 1
    """Evaluations in the first step."""
    more_down: int = 0
    """The number of vectors that only the server sends."""


BILLS = {
    "FCSG": Bill(gradients=1, sends=1),
    "FCSG-M": Bill(gradients=1, sends=2),
    "Acc-FCSG-M": Bill(gradients=2, sends=2),
    "STEM": Bill(gradients=2, sends=2),
    "FedAvg": Bill(gradients=1, sends=1),
    "SCAFFOLD": Bill(gradients=1, sends=2),
    "Local-SCGD": Bill(gradients=1, sends=2, missing_at_first=1),
    "Local-SCGDM": Bill(gradients=1, sends=3, missing_at_first=1),
    "SOX": Bill(gradients=1, sends=2),  # its table stays at home
    "MOML": Bill(gradients=1, sends=2),
    "SOAP": Bill(gradients=1, sends=1),
    "MimeLite": Bill(gradients=2, sends=2, gradients_at_first=2),
    # around FCSG-M, whose costs they have
    **dict.fromkeys(["ServerRate", "FedAvgM", "FedAdagrad", "FedAdam", "FedYogi", "FedProx"], Bill(1, 2)),
    "FAFED": Bill(gradients=1, sends=2, more_down=1),
    "MOAP": Bill(gradients=1, sends=2),
    "MSVR": Bill(gradients=1, sends=2),  # at the previous iterate it needs ĝ, but no gradient
}


@pytest.mark.parametrize(
    ("name", "engine"), [(name, engine) for name in BILLS for engine in engines_for(SETTINGS[name])]
)
def test_a_federated_method_costs_what_its_bill_says(name, engine):
    case = CASE if SETTINGS[name].stacks else FINITE
    bill, clients, rounds = BILLS[name], len(CASE.clients), PLAN.rounds
    later_steps = PLAN.total_steps - 1
    outer = clients * (PLAN.initial_batch + later_steps * PLAN.outer_batch)
    assert run_on(engine, SETTINGS[name], case, PLAN).costs == Costs(
        outer_samples=outer,
        inner_samples=outer * PLAN.inner_batch,
        gradients=clients
        * (bill.gradients_at_first * PLAN.initial_batch + bill.gradients * later_steps * PLAN.outer_batch),
        rounds=rounds,
        bytes_up=clients * rounds * bill.sends * VECTOR,
        bytes_down=clients * (rounds * (bill.sends + bill.more_down) - bill.missing_at_first) * VECTOR,
    )


@pytest.mark.parametrize("engine", ENGINES)
def test_bsgd_costs_a_batch_a_step(engine):
    method = SETTINGS["BSGD"]
    case, plan = for_method(method, CASE, PLAN)
    outer = PLAN.initial_batch + PLAN.outer_batch
    assert run_on(engine, method, case, plan).costs == Costs(
        outer_samples=outer,
        inner_samples=outer * PLAN.inner_batch,
        gradients=outer,
        rounds=2,
        bytes_up=2 * VECTOR,
        bytes_down=2 * VECTOR,
    )


@pytest.mark.parametrize("engine", ENGINES)
def test_bspiderboost_costs_a_large_batch_every_period_and_two_gradients_a_sample_between(engine):
    method, steps = SETTINGS["BSpiderBoost"], 7
    case, plan = for_method(method, CASE, replace(PLAN, rounds=steps))
    large = sum(t % method.period == 0 for t in range(steps))
    small = steps - large
    outer = large * method.large_batch + small * plan.outer_batch
    assert run_on(engine, method, case, plan).costs == Costs(
        outer_samples=outer,
        inner_samples=outer * plan.inner_batch,
        gradients=large * method.large_batch + 2 * small * plan.outer_batch,
        rounds=steps,
        bytes_up=2 * steps * VECTOR,
        bytes_down=2 * steps * VECTOR,
    )


@pytest.mark.parametrize(("name", "sends"), [("CODA+", 1), ("CODASCA", 2)])
def test_coda_sends_v_and_the_dual_alone(name, sends):
    case = SADDLES["auroc"]
    bytes_of_x = 8 * (4 + 1 + 3)  # a linear model of four inputs; a, b and the dual
    costs = run_on("reference", SETTINGS[name], case, PLAN).costs
    assert costs.bytes_up == costs.bytes_down == len(case.clients) * PLAN.rounds * sends * bytes_of_x
    assert costs.gradients == costs.outer_samples


OF_OWN_PROBLEMS = {
    "Per-FedAvg": (1, 0),
    "FedMeta": (1, 0),
    "Reptile": (1, 0),
    "ComFedL": (1, 0),
    "FGDRO-KL": (2, 1),
    "SCENT": (1, 0),
}
"""The vectors and numbers that methods send which need a problem of their own."""


@pytest.mark.parametrize("name", OF_OWN_PROBLEMS)
def test_a_method_with_a_problem_of_its_own_costs_what_its_bill_says(name):
    """The server's first message has no number yet."""
    vectors, numbers = OF_OWN_PROBLEMS[name]
    case, plan = for_method(SETTINGS[name], next(iter(cases_for(SETTINGS[name]).values())), PLAN)
    costs, messages = run_on("reference", SETTINGS[name], case, plan).costs, len(case.clients) * plan.rounds
    bytes_of_x = nbytes(case.problem.init(torch.Generator()))
    assert costs.bytes_up == messages * (vectors * bytes_of_x + 8 * numbers)
    assert costs.bytes_down == costs.bytes_up - 8 * numbers * len(case.clients)
    assert costs.gradients == costs.outer_samples


def test_every_method_has_a_bill():
    single_machine, saddles = {"BSGD", "BSpiderBoost"}, {"CODA+", "CODASCA"}
    in_their_own_tests = {"MIME", "Fed-GLOMO", "PAGE", "SLATE", "SLATE-M", "FeDXL2"}
    assert BILLS.keys() | OF_OWN_PROBLEMS.keys() | single_machine | saddles | in_their_own_tests == SETTINGS.keys()


@pytest.mark.parametrize("engine", ENGINES)
def test_only_participants_cost(engine):
    everyone = run_on(engine, FCSG(0.1), CASE, PLAN).costs
    one = run_on(engine, FCSG(0.1), CASE, replace(PLAN, participation=1)).costs
    assert replace(one, rounds=0) * len(CASE.clients) == replace(everyone, rounds=0)
    assert one.rounds == everyone.rounds


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("participation", [1, 2, 0.7, 1.0])
def test_participation_is_counted(engine, participation):
    plan = Plan(rounds=6, local_steps=1, participation=participation)
    trace = run_on(engine, FCSG(0.1), CASE, plan)
    rounds = [plan.participants(0, r, len(CASE.clients)) for r in range(plan.rounds)]
    assert trace.participation == Counter(n for chosen in rounds for n in chosen)


@pytest.mark.parametrize("engine", ENGINES)
def test_an_identity_inner_costs_no_inner_samples(engine):
    trace = run_on(engine, FCSG(0.1), classification(), PLAN)
    assert trace.costs.inner_samples == 0
    assert trace.costs.outer_samples > 0


def test_drawing_the_mean_still_counts_as_drawing_its_samples():
    literal = InvariantLogistic(dimension=3, dtype=torch.float64)
    at_once = replace(literal, draw_mean=True)
    sources = literal.clients(2)
    bills = [run_on("stacked", FCSG(0.1), Case(problem, sources), PLAN).costs for problem in (literal, at_once)]
    assert bills[0] == bills[1]


def test_costs_add_and_multiply_by_field():
    one, two = Costs(1, 2, 3, 4, 5, 6), Costs(10, 20, 30, 40, 50, 60)
    assert one + two == Costs(11, 22, 33, 44, 55, 66)
    assert one * 10 == two
    assert one.as_dict() == {
        "outer_samples": 1,
        "inner_samples": 2,
        "gradients": 3,
        "rounds": 4,
        "bytes_up": 5,
        "bytes_down": 6,
    }
