"""What a metric declares, and what is derived from it."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedcso.core.errors import FedcsoError, InvalidValue
from fedcso.core.metric import DeclaredMetrics, Metric, Symptom

SCORE = Metric("f1", "F1", higher_is_better=True, share=True)
LOSS = Metric("loss", higher_is_better=False)


def test_a_score_is_better_when_higher_and_a_loss_when_lower():
    assert SCORE.is_better(0.9, 0.8)
    assert not SCORE.is_better(0.75, 0.8)
    assert LOSS.is_better(0.6, 0.7)
    assert not LOSS.is_better(0.75, 0.7)


@pytest.mark.parametrize("metric", [SCORE, LOSS])
def test_an_equal_value_is_not_better(metric):
    assert not metric.is_better(0.7, 0.7)


@pytest.mark.parametrize("metric", [SCORE, LOSS])
@pytest.mark.parametrize("undefined", [math.nan, math.inf, -math.inf])
def test_every_finite_value_is_better_than_an_undefined_one_and_that_is_never_better(metric, undefined):
    assert metric.is_better(3.0, undefined)
    assert not metric.is_better(undefined, 3.0)
    assert not metric.is_better(undefined, undefined)


def test_what_has_no_direction_decides_nothing():
    with pytest.raises(FedcsoError, match=r"^mine can't choose a model: declare it with higher_is_better"):
        Metric("mine").is_better(1.0, 0.0)


def test_a_title_is_the_name_in_words_unless_it_is_given():
    assert Metric("average_precision").title == "average precision"
    assert SCORE.title == "F1"


@pytest.mark.parametrize("name", ["", None, 3])
def test_a_metric_has_a_name(name):
    with pytest.raises(InvalidValue, match="name"):
        Metric(name)


def test_the_same_metric_on_other_data_keeps_its_direction_and_scale():
    for derived in (SCORE.on_test(), SCORE.on_validation(), SCORE.over_clients(), SCORE.over_clients().on_validation()):
        assert (derived.higher_is_better, derived.share) == (True, True)
    assert [SCORE.on_test().name, SCORE.on_test().title] == ["f1", "test F1"]
    assert [SCORE.on_validation().name, SCORE.on_validation().title] == ["validation_f1", "validation F1"]
    assert [SCORE.over_clients().name, SCORE.over_clients().title] == ["client_f1", "F1, mean over clients"]


def test_chance_is_that_of_the_same_data():
    by_name, by_number = replace(SCORE, chance="prevalence"), replace(SCORE, chance=0.2)
    assert by_name.on_validation().chance == "validation_prevalence"
    assert by_name.over_clients().chance is None  # clients differ in it
    assert by_number.on_validation().chance == by_number.over_clients().chance == 0.2


def test_a_half_width_belongs_to_its_metric_and_has_no_curve():
    width = SCORE.half_width()
    assert (width.name, width.half_width_of, width.curve, width.higher_is_better) == ("f1_interval", "f1", False, None)
    assert width.on_validation().half_width_of == "validation_f1"


# -------------------------------------------------------------------------------- all metrics of a run

DECLARED = DeclaredMetrics([SCORE, LOSS], deciding="f1", validated=True, headline="f1")


def test_declared_metrics_come_in_their_order_and_then_the_others():
    names = ["mine", "loss", "yours", "f1", "loss"]
    assert [metric.name for metric in DECLARED.ordered(names)] == ["f1", "loss", "mine", "yours"]


def test_nothing_but_the_name_is_known_of_what_nobody_has_declared():
    assert DECLARED["f1"] == SCORE
    assert DECLARED["mine"] == Metric("mine")


metrics = st.builds(
    Metric,
    name=st.text(min_size=1),
    title=st.text(),
    higher_is_better=st.none() | st.booleans(),
    share=st.booleans(),
    log=st.booleans(),
    chance=st.none() | st.text() | st.floats(allow_nan=False),
    curve=st.booleans(),
    tabulated=st.booleans(),
    symptom=st.none() | st.builds(Symptom, st.floats(allow_nan=False), st.text()),
    half_width_of=st.none() | st.text(),
)


@given(st.lists(metrics), st.text(), st.booleans(), st.text())
def test_what_was_written_is_read_back(some, deciding, validated, headline):
    declared = DeclaredMetrics(some, deciding, validated, headline)
    assert DeclaredMetrics.from_json(declared.to_json()) == declared


def test_what_another_version_has_written_besides_is_left_out():
    text = DECLARED.to_json().replace('"share"', '"unheard_of": 1,\n"share"')
    assert "unheard_of" in text
    assert DeclaredMetrics.from_json(text) == DECLARED


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"metrics": [1]}', '{"metrics": [{"title": "a"}]}', '{"metrics": 3}']
)
def test_something_else_is_refused(text):
    with pytest.raises(FedcsoError, match=r"metrics\.json can't be read"):
        DeclaredMetrics.from_json(text)
