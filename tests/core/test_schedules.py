"""The values of schedules at given steps, and the settings that they refuse."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedcso.algorithms import FCSG, FCSGM, FedAdam
from fedcso.core.algorithm import bind_schedules
from fedcso.core.errors import InvalidValue
from fedcso.core.plan import Plan
from fedcso.core.schedules import SCHEDULES, Cosine, Exponential, InverseSqrt

VALUES = [
    (InverseSqrt(2.0), 0, 2.0),
    (InverseSqrt(2.0), 3, 1.0),
    (InverseSqrt(2.0, steps=10), 30, 1.0),
    (Cosine(0.5, 100, floor=0.1), 0, 0.5),
    (Cosine(0.5, 100, floor=0.1), 50, 0.5 * 0.55),
    (Cosine(0.5, 100, floor=0.1), 100, 0.05),
    (Cosine(0.5, 100, floor=0.1), 1000, 0.05),
    (Cosine(0.5, 100), 25, 0.5 * (0.01 + 0.99 * (1 + math.sqrt(0.5)) / 2)),
    (Exponential(3.0, 0.5), 0, 3.0),
    (Exponential(3.0, 0.5), 2, 0.75),
    (Exponential(3.0, 0.5, steps=10), 20, 0.75),
    (Exponential(3.0, 1.0), 99, 3.0),
]


@pytest.mark.parametrize(("schedule", "t", "value"), VALUES)
def test_its_value_at_a_step(schedule, t, value):
    assert schedule(t) == pytest.approx(value)


REFUSED = [
    (InverseSqrt, {"start": 0.0}, "start"),
    (InverseSqrt, {"start": 1.0, "steps": 0}, "steps"),
    (Cosine, {"start": -1.0, "steps": 5}, "start"),
    (Cosine, {"start": 1.0, "steps": 0}, "steps"),
    (Cosine, {"start": 1.0, "steps": 2.5}, "steps"),
    (Cosine, {"start": 1.0, "steps": 5, "floor": 0.0}, "floor"),
    (Cosine, {"start": 1.0, "steps": 5, "floor": 1.5}, "floor"),
    (Exponential, {"start": math.inf, "factor": 0.5}, "start"),
    (Exponential, {"start": 1.0, "factor": 0.0}, "factor"),
    (Exponential, {"start": 1.0, "factor": 2.0}, "factor"),
    (Exponential, {"start": "1", "factor": 0.5}, "start"),
]


@pytest.mark.parametrize(("kind", "settings", "field"), REFUSED)
def test_what_makes_no_sense_is_refused_by_name(kind, settings, field):
    with pytest.raises(InvalidValue, match=f"^{field} = "):
        kind(**settings)


def test_every_schedule_is_tested_here():
    assert {type(schedule) for schedule, _, _ in VALUES} == set(SCHEDULES.values())


any_schedule = st.one_of(
    st.builds(InverseSqrt, st.floats(1e-6, 1e3), st.integers(1, 10**6)),
    st.builds(Cosine, st.floats(1e-6, 1e3), st.integers(1, 10**6), st.floats(1e-6, 1.0)),
    st.builds(Exponential, st.floats(1e-6, 1e3), st.floats(0.9, 1.0), st.integers(1, 10**6)),
)


@given(any_schedule, st.integers(0, 1000), st.integers(0, 1000))
def test_it_falls_from_its_start_and_stays_above_zero(schedule, t, later):
    assert schedule(0) == pytest.approx(schedule.start)
    assert schedule(t) * (1 + 1e-12) >= schedule(t + later) > 0


@pytest.mark.parametrize("schedule", [InverseSqrt(0.1), Cosine(0.1, 5), Exponential(0.1, 0.9)])
def test_an_algorithm_takes_it(schedule):
    assert FCSG(learning_rate=schedule).learning_rate is schedule


def test_a_cosine_without_steps_lasts_as_long_as_the_run():
    assert Cosine(0.5, floor=0.1).over(100) == Cosine(0.5, 100, floor=0.1)
    assert Cosine(0.5, 30).over(100) == Cosine(0.5, 30)
    assert Cosine(0.5)(0) == 0.5  # what methods check
    with pytest.raises(InvalidValue, match="known only in a run"):
        Cosine(0.5)(1)


def test_a_method_gets_the_length_of_its_run():
    method = bind_schedules(FCSGM(Cosine(0.5), InverseSqrt(0.3)), Plan(rounds=10, local_steps=10))
    assert method == FCSGM(Cosine(0.5, 100), InverseSqrt(0.3))
    assert bind_schedules(method, Plan(rounds=7)) == method
    plain = FCSG(0.1)
    assert bind_schedules(plain, Plan(rounds=7)) is plain


def test_schedules_of_the_server_count_rounds():
    method = bind_schedules(FedAdam(FCSG(Cosine(0.5)), server_rate=Cosine(0.1)), Plan(rounds=10, local_steps=3))
    assert method == FedAdam(FCSG(Cosine(0.5, 30)), server_rate=Cosine(0.1, 10))
