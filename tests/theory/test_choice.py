"""The choice of an estimator at x_0: the rule, what a look finds where the bias is known, and what it may cost."""

from dataclasses import replace

import pytest
import torch

from fedcso.core.plan import Plan
from fedcso.core.streams import stream
from fedcso.problems import PROBLEMS, InvariantLogistic, NestedQuadratic
from fedcso.theory import choice
from fedcso.theory.choice import Error, by_rule, choose_estimator
from tests.helpers import classification

PLAN = Plan(rounds=20, local_steps=10, outer_batch=4, inner_batch=4)
NOISY = NestedQuadratic(dimension=2, noise=2.0)
X = torch.tensor([3.0, -2.0], dtype=torch.float64)


def choose(problem=NOISY, x=X, clients=None, plan=PLAN, seed=0) -> choice.Choice:
    clients = [torch.ones(2, dtype=torch.float64)] * 4 if clients is None else clients
    return choose_estimator(problem, x, clients, plan, [1.0] * len(clients), seed)


@pytest.mark.parametrize(
    ("plain", "extrapolated", "three_level", "expected"),
    [
        (1.0, 1.0, 1.0, "extrapolated"),  # x_0 shows no difference
        (0.95, 1.0, 0.92, "extrapolated"),  # the others are not clearly better
        (0.8, 1.0, 0.85, "plain"),
        (0.95, 1.0, 0.5, "three_level"),
        (2.0, 1.0, 1.5, "extrapolated"),
    ],
)
def test_another_estimator_must_be_clearly_better(plain, extrapolated, three_level, expected):
    errors = {"plain": plain, "extrapolated": extrapolated, "three_level": three_level}
    assert by_rule({name: Error(0.0, size) for name, size in errors.items()}) == expected


def test_bias_and_noise_count_alike():
    assert Error(3.0, 4.0).size == 5.0


def test_a_known_bias_is_found_and_removed():
    """Where f is quadratic, the whole bias τ²x/m is removed."""
    found = choose()
    assert found.estimator == "extrapolated"
    truth = float(NOISY.bias(X, PLAN.inner_batch).norm())
    assert "the error of a round at x_0 is plain " in found.reason
    stated = float(found.reason.partition("(bias ")[2].partition(",")[0])
    assert stated == pytest.approx(truth, rel=0.5)


def test_much_noise_and_hardly_any_bias_leave_the_preferred_one():
    assert choose(NestedQuadratic(dimension=2, noise=0.01, spread=5.0)).estimator == "extrapolated"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"plan": replace(PLAN, inner_batch=3)}, "others can't be used: inner_batch = 3 must be even"),
        ({"plan": replace(PLAN, rounds=1, local_steps=1)}, "the run is so short that a look would cost more than 5%"),
    ],
)
def test_plain_is_chosen_with_a_reason_where_others_can_not_be(options, says):
    found = choose(**options)
    assert found.estimator == "plain"
    assert says in found.reason
    assert found.costs.inner_samples == 0


def test_a_problem_that_draws_means_keeps_plain():
    problem = InvariantLogistic(dimension=2, draw_mean=True)
    found = choose(problem, torch.ones(2), problem.clients(2))
    assert found.estimator == "plain"
    assert "set draw_mean to false" in found.reason


def test_nothing_is_looked_at_where_there_is_no_bias():
    case = classification()
    found = choose(case.problem, case.problem.init(stream(0, 0, 0)), case.clients)
    assert (found.estimator, found.reason) == ("plain", "the problem has no inner samples")
    task = PROBLEMS["partial_auc"](objective="one_way_cvar", data="breast_cancer", clients=2, net="linear")
    start = task.starting_point(stream(0, 0, 0))
    found = choose(task.problem, start, task.clients)
    assert (found.estimator, found.reason) == ("plain", "f is linear, so no estimator is biased")


@pytest.mark.parametrize("rounds", [20, 50, 1000])
def test_a_look_costs_at_most_its_share(rounds):
    plan = replace(PLAN, rounds=rounds)
    found = choose(plan=plan)
    whole = rounds * plan.local_steps * 4 * plan.outer_batch * plan.inner_batch
    assert 0 < found.costs.inner_samples <= choice.MOST_SHARE * whole
    assert found.costs.inner_samples <= choice.BATCHES * 4 * choice.MOST_EACH * 2 * plan.inner_batch
    assert f"the look cost {found.costs.inner_samples:,} inner samples" in found.reason


def test_the_same_seed_chooses_the_same():
    assert choose(seed=3) == choose(seed=3)
    assert choose(seed=3).reason != choose(seed=4).reason
