"""Error messages name the field, the value and what is allowed."""

import pickle

import pytest
import torch

from fedcso.core.errors import (
    FedcsoError,
    InvalidValue,
    NonFinite,
    UnknownName,
    require_choice,
    require_count,
    require_fraction,
    require_nonnegative,
    require_positive,
)


def test_an_invalid_value_names_field_value_and_range():
    error = InvalidValue("momentum", 2.0, "in (0, 1]")
    assert str(error) == "momentum = 2.0 must be in (0, 1]"
    assert isinstance(error, ValueError)
    assert isinstance(error, FedcsoError)


def test_an_unknown_name_suggests_the_nearest():
    message = str(UnknownName("algorithm", "FCGS-M", ["FCSG", "FCSG-M", "STEM"]))
    assert message.startswith("unknown algorithm 'FCGS-M'; did you mean FCSG-M")
    assert message.endswith("(known: FCSG, FCSG-M, STEM)")


def test_an_unknown_name_unlike_any_suggests_none():
    assert "did you mean" not in str(UnknownName("algorithm", "zzz", ["FCSG"]))


@pytest.mark.parametrize("error", [InvalidValue("a", "x" * 10**6, "short"), UnknownName("b", "x" * 10**6, ["c"])])
def test_a_long_value_is_not_shown_in_full(error):
    assert len(str(error)) < 1100
    assert "…" in str(error)


@pytest.mark.parametrize("known", [["x" * 10**6, "y" * 10**6], [f"column {n}" for n in range(10**5)]])
def test_of_endless_names_the_beginning_is_shown(known):
    assert len(str(UnknownName("column", "z", known))) < 6000


def test_non_finite_says_where_and_when_and_what_to_do():
    message = str(NonFinite("gradient x.weight", client=3, round=4, step=17, seed=5))
    assert "gradient x.weight at client 3, round 4, step 17 (seed 5)" in message
    assert "smaller learning rate" in message
    assert "on_nonfinite = 'drop'" in message


def test_non_finite_survives_a_trip_between_processes():
    error = NonFinite("loss", client=3, round=4, step=17, seed=5)
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is NonFinite
    assert vars(copy) == vars(error)
    assert str(copy) == str(error)


def test_a_grid_is_checked_entry_by_entry():
    require_fraction("momentum", torch.tensor([0.1, 1.0]))
    with pytest.raises(InvalidValue, match="momentum"):
        require_fraction("momentum", torch.tensor([0.1, 1.5]))


def test_a_schedule_is_tried_at_its_start():
    require_positive("learning_rate", lambda t: 1 / (1 + t))
    with pytest.raises(InvalidValue, match=r"learning_rate = 0\.0"):
        require_positive("learning_rate", lambda t: 0.0)


@pytest.mark.parametrize("value", [1, 0.5, 1.0])
def test_fractions_go_up_to_one(value):
    require_fraction("momentum", value)


@pytest.mark.parametrize("value", [True, None, "1", [1]])
def test_what_is_no_number_is_refused(value):
    for check in (require_positive, require_fraction, require_count):
        with pytest.raises(InvalidValue, match="field"):
            check("field", value)


@pytest.mark.parametrize("value", [10**400, -(10**400)])
def test_whole_numbers_beyond_floats_are_refused_where_fractions_are_allowed(value):
    for check in (require_positive, require_nonnegative, require_fraction):
        with pytest.raises(InvalidValue, match="field"):
            check("field", value)


def test_counts_may_start_elsewhere():
    require_count("seed", 0, least=0)
    with pytest.raises(InvalidValue, match=r"seed = -1 .*at least 0"):
        require_count("seed", -1, least=0)


def test_choices_are_listed():
    require_choice("weights", "size", ["uniform", "size"])
    with pytest.raises(InvalidValue, match=r"weights = 'sise' .*one of 'uniform', 'size'"):
        require_choice("weights", "sise", ["uniform", "size"])
