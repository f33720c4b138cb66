"""Settings are chosen fairly: the same number of trials for every method."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedcso.experiments import trials
from fedcso.experiments.trials import FINER, Space, Trial

MOMENTA, TRACKING = [0.9, 0.1, 0.5], [0.2, 0.4, 0.8]
OTHERS = {
    "FCSG": {},
    "FCSGM": {"momentum": MOMENTA},
    "AccFCSGM": {"momentum": MOMENTA},
    "LocalSCGD": {"tracking": TRACKING},
    "LocalSCGDM": {"tracking": TRACKING, "momentum": MOMENTA},
}


def fcsg(learning_rate):
    return {"learning_rate": learning_rate}


def fcsg_m(learning_rate, momentum):
    return {"learning_rate": learning_rate, "momentum": momentum}


def scgdm(learning_rate, tracking, momentum):
    return {"learning_rate": learning_rate, "tracking": tracking, "momentum": momentum}


def spaces(rates=(0.01, 0.1, 1.0)):
    return {method: Space(rates, others) for method, others in OTHERS.items()}


def search(score, turns, rates=(0.01, 0.1, 1.0)):
    """All trials, and what was tried in which turn."""
    turns_run = []

    def evaluate(turn, settings):
        turns_run.append((turn, settings))
        return {method: [score(one) for one in some] for method, some in settings.items()}

    return trials.search(spaces(rates), turns, evaluate), turns_run


@given(
    rates=st.lists(st.floats(1e-3, 1.0), min_size=1, max_size=4, unique=True),
    turns=st.integers(0, 4),
    data=st.data(),
)
def test_every_method_has_the_same_number_of_trials_however_they_went(rates, turns, data):
    scores = st.floats() | st.just(math.inf)
    tried, _ = search(lambda one: data.draw(scores), turns, rates)
    assert {len(some) for some in tried.values()} == {len(rates) + 2 * turns}
    for method, some in tried.items():
        assert len({tuple(trial.settings.items()) for trial in some}) == len(some), (
            f"{method} was tried twice with the same"
        )


def test_first_come_all_rates_with_the_other_settings_in_the_middle():
    _, turns_run = search(lambda one: 0.0, turns=0)
    ((turn, settings),) = turns_run
    assert turn == 0
    assert settings["FCSG"] == [fcsg(0.01), fcsg(0.1), fcsg(1.0)]
    assert settings["LocalSCGDM"] == [scgdm(rate, tracking=0.4, momentum=0.5) for rate in (0.01, 0.1, 1.0)]


def test_a_space_may_say_where_its_other_settings_start():
    """The values next to the start are tried before those further away."""
    others = {"tracking": TRACKING, "momentum": MOMENTA}
    space = Space((0.1, 1.0), others, {"tracking": 0.8, "momentum": 0.1})
    turns_run = []

    def evaluate(turn, settings):
        turns_run.append(settings["SCGDM"])
        return {"SCGDM": [one["learning_rate"] for one in settings["SCGDM"]]}

    trials.search({"SCGDM": space}, 2, evaluate)
    assert turns_run == [
        [scgdm(0.1, 0.8, 0.1), scgdm(1.0, 0.8, 0.1)],
        [scgdm(0.1, 0.4, 0.1), scgdm(0.1, 0.8, 0.5)],
        [scgdm(0.1, 0.2, 0.1), scgdm(0.1, 0.8, 0.9)],
    ]


def test_then_come_the_other_settings_at_the_best_so_far():
    """Best are a rate of 0.1, a momentum of 0.9 and a tracking weight of 0.2."""

    def score(one):
        wanted = {"learning_rate": 0.1, "momentum": 0.9, "tracking": 0.2}
        return sum(abs(one.get(name, value) - value) for name, value in wanted.items())

    tried, turns_run = search(score, turns=2)
    assert [turn for turn, _ in turns_run] == [0, 1, 2]
    _, first, second = (settings for _, settings in turns_run)
    assert first["LocalSCGDM"] == [scgdm(0.1, tracking=0.2, momentum=0.5), scgdm(0.1, tracking=0.4, momentum=0.9)]
    assert second["LocalSCGDM"] == [scgdm(0.1, tracking=0.8, momentum=0.9), scgdm(0.1, tracking=0.4, momentum=0.1)]
    assert first["FCSGM"] == [fcsg_m(0.1, momentum) for momentum in (0.9, 0.1)]
    assert second["FCSGM"] == [fcsg_m(0.1 / FINER, 0.9), fcsg_m(0.1 * FINER, 0.9)]
    assert trials.best(tried["LocalSCGDM"]) == scgdm(0.1, 0.4, 0.9)
    assert trials.best(tried["FCSGM"]) == fcsg_m(0.1, 0.9)


def test_who_has_no_more_settings_tries_rates_between_ever_finer():
    _, turns_run = search(lambda one: abs(math.log(one["learning_rate"] / 0.17)), turns=3)
    assert [settings["FCSG"] for _, settings in turns_run[1:]] == [
        [fcsg(0.1 / FINER), fcsg(0.1 * FINER)],  # of which the second is the best so far
        [fcsg(0.1 * FINER / FINER**0.5), fcsg(0.1 * FINER * FINER**0.5)],
        [fcsg(0.1 * FINER / FINER**0.25), fcsg(0.1 * FINER * FINER**0.25)],
    ]


@pytest.mark.parametrize("score", [math.nan, math.inf, -math.inf])
def test_a_trial_without_a_score_is_never_chosen(score):
    assert trials.best([Trial(fcsg(0.1), score), Trial(fcsg(0.2), 1e9), Trial(fcsg(0.3), score)]) == fcsg(0.2)


def test_the_least_is_chosen_and_of_equals_the_first():
    some = [Trial(fcsg(0.1), 2.0), Trial(fcsg(0.2), 1.0), Trial(fcsg(0.3), 1.0)]
    assert trials.best(some) == fcsg(0.2)


def test_if_all_broke_off_the_first_stands_for_them():
    assert trials.best([Trial(fcsg(0.1), math.inf), Trial(fcsg(0.2), math.nan)]) == fcsg(0.1)


def test_all_trials_stand_in_a_table():
    tried = {"FCSG": [Trial(fcsg(0.1), 0.5), Trial(fcsg(0.2), math.inf)], "FCSG-M": [Trial(fcsg_m(0.1, 0.3), 0.4)]}
    assert trials.as_rows(tried, "validation_loss") == [
        {"algorithm": "FCSG", "learning_rate": 0.1, "validation_loss": 0.5},
        {"algorithm": "FCSG", "learning_rate": 0.2, "validation_loss": math.inf},
        {"algorithm": "FCSG-M", "learning_rate": 0.1, "momentum": 0.3, "validation_loss": 0.4},
    ]


def test_scores_must_match_the_settings_they_are_for():
    with pytest.raises(ValueError, match="zip"):
        trials.search(spaces(), 0, lambda turn, settings: {method: [1.0] for method in settings})
