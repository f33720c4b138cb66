"""The sizes of a run: allowed values, and the clients that take part in a round."""

import math
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedcso.core.errors import InvalidValue
from fedcso.core.plan import Plan, round_half_up
from fedcso.core.task import Task

COUNTS = ["rounds", "local_steps", "outer_batch", "inner_batch", "initial_batch", "evaluate_every"]


@pytest.mark.parametrize("field", COUNTS)
@pytest.mark.parametrize("value", [0, -1, 1.5, True, "ten"])
def test_counts_are_whole_numbers_from_one(field, value):
    with pytest.raises(InvalidValue) as caught:
        Plan(**{field: value})
    assert str(caught.value) == f"{field} = {value!r} must be a whole number, at least 1"


@pytest.mark.parametrize("value", [0, -1, 0.0, -0.5, 1.5, math.nan, True, "all", None])
def test_participation_is_a_fraction_or_a_number(value):
    with pytest.raises(InvalidValue) as caught:
        Plan(participation=value)
    assert f"participation = {value!r}" in str(caught.value)
    assert "a fraction in (0, 1] (float) or a number of clients, at least 1 (int)" in str(caught.value)


@pytest.mark.parametrize(("field", "choices"), [("weights", "'uniform', 'size'"), ("on_nonfinite", "'stop', 'drop'")])
def test_choices_are_listed(field, choices):
    with pytest.raises(InvalidValue) as caught:
        Plan(**{field: "other"})
    assert str(caught.value) == f"{field} = 'other' must be one of {choices}"


def test_the_initial_batch_is_like_all_others_unless_given():
    assert Plan(outer_batch=3).initial == 3
    assert Plan(outer_batch=3, initial_batch=7).initial == 7


def test_steps_count_over_the_whole_run():
    plan = Plan(rounds=3, local_steps=4)
    steps = [t for round in range(plan.rounds) for t in plan.steps(round)]
    assert steps == list(range(plan.total_steps))


# ------------------------------------------------------------------------------------ participation

clients = st.integers(1, 60)
places = st.tuples(st.integers(0, 1000), st.integers(0, 1000))


@given(clients, st.floats(0, 1, exclude_min=True), places)
def test_a_fraction_takes_the_nearest_number_of_clients_but_at_least_one(clients, fraction, place):
    chosen = Plan(participation=fraction).participants(*place, clients)
    assert len(chosen) == max(1, math.floor(fraction * clients + 0.5))
    assert chosen == sorted(set(chosen))
    assert set(chosen) <= set(range(clients))


@given(st.data(), clients, places)
def test_a_number_takes_that_many_clients(data, clients, place):
    number = data.draw(st.integers(1, clients))
    plan = Plan(participation=number)
    chosen = plan.participants(*place, clients)
    assert len(chosen) == number
    assert chosen == sorted(set(chosen))
    assert set(chosen) <= set(range(clients))
    assert chosen == plan.participants(*place, clients), "the same seed and round choose the same clients"


def test_one_client_and_all_clients_are_different_things():
    assert len(Plan(participation=1).participants(0, 0, clients=5)) == 1
    assert Plan(participation=1.0).participants(0, 0, clients=5) == [0, 1, 2, 3, 4]


def test_rounds_and_seeds_choose_for_themselves():
    plan = Plan(participation=3)
    assert len({tuple(plan.participants(0, round, 20)) for round in range(10)}) > 1
    assert len({tuple(plan.participants(seed, 0, 20)) for seed in range(10)}) > 1


def test_all_clients_are_chosen_equally_often():
    number, of, rounds = 3, 10, 1000
    plan = Plan(participation=number)
    counts = [0] * of
    for round in range(rounds):
        for client in plan.participants(0, round, of):
            counts[client] += 1
    p = number / of
    assert sum(counts) == number * rounds
    assert all(abs(count - rounds * p) < 4 * math.sqrt(rounds * p * (1 - p)) for count in counts)


@pytest.mark.parametrize(("value", "expected"), [(0.4, 0), (0.5, 1), (1.5, 2), (2.5, 3), (2.4, 2)])
def test_halves_are_rounded_up(value, expected):
    assert round_half_up(value) == expected


class Nested(NamedTuple):
    """Stands for a problem, of which only the number of inner samples matters."""

    shared: bool

    def inner_samples(self, b, m):
        return m if self.shared else b * m


def test_a_task_decides_about_weights_unless_the_plan_does():
    sized = Task(None, [], weights="size")
    assert Plan().for_task(sized).weights == "size"
    assert Plan().for_task(Task(None, [])).weights == "uniform"
    assert Plan(weights="uniform").for_task(sized).weights == "uniform"


@pytest.mark.parametrize("shared", [True, False])
def test_a_client_that_stands_for_several_draws_as_many_samples_as_they(shared):
    problem = Nested(shared)
    plan = Plan(outer_batch=2, inner_batch=5, initial_batch=7)
    pooled = plan.for_task(Task(problem, [], stands_for=3))
    assert (pooled.outer_batch, pooled.initial) == (6, 21)
    drawn, each = (problem.inner_samples(some.outer_batch, some.inner_batch) for some in (pooled, plan))
    assert drawn == 3 * each
