"""Rows as curves."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedcso.reports.charts import AXES, charts
from fedcso.reports.recorded import Record
from tests.declared import CLASSIFIED, RANKED


def row(algorithm="FCSG", seed=0, round=0, **metrics):
    costs = {"outer_samples": 2 * round, "inner_samples": 3 * round, "bytes_up": 10**6 * round, "bytes_down": 0}
    return {
        "algorithm": algorithm,
        "seed": seed,
        "round": round,
        "step": 10 * round,
        "seconds": 0.5,
        **costs,
        **metrics,
    }


def test_mean_and_interval_over_seeds_at_each_round():
    some = [row(seed=s, round=r, accuracy=0.5 + 0.1 * s) for s in (0, 1) for r in (0, 4)]
    found = charts(Record(some, CLASSIFIED))
    (chart,) = found["charts"]
    (series,) = chart["series"]
    assert chart["title"] == "test accuracy"
    assert [mean for mean, _ in series["y"]] == [0.55, 0.55]
    assert series["y"][0][1] == pytest.approx(0.05 * 12.7062, rel=1e-4)  # Student's t with one degree of freedom
    places = {"rounds": [0, 4], "local steps": [0, 40], "samples": [0, 20], "megabytes": [0, 4], "seconds": [0.5, 0.5]}
    assert series["x"] == places
    assert found["axes"] == list(AXES)


def test_one_seed_has_no_band():
    (chart,) = charts(Record([row(loss=1.0)]))["charts"]
    assert chart["series"][0]["y"] == [[1.0, None]]


def test_the_chance_line_is_there_where_it_is_known():
    (chart,) = charts(Record([row(average_precision=0.7, prevalence=0.1)], RANKED))["charts"]
    assert chart["chance"] == 0.1
    assert chart["bounds"] == [0, 1]


def test_precision_and_recall_have_their_own_axis():
    ranked = [{"algorithm": "FCSG", "seed": 0, "recall": r, "precision": 1 - r, "prevalence": 0.2} for r in (0.0, 1.0)]
    chart = charts(Record([row(loss=1.0)], ranked=ranked))["charts"][1]
    assert chart["axis"] == "recall"
    assert chart["series"][0]["x"] == {"recall": [0.0, 1.0]}
    assert [mean for mean, _ in chart["series"][0]["y"]] == [1.0, 0.0]


def test_clients_are_places_and_the_undefined_stays_undefined():
    clients = [
        {"algorithm": "FCSG", "seed": 0, "client": "north", "average_precision": 0.5},
        {"algorithm": "FCSG", "seed": 0, "client": 7, "average_precision": "undefined"},
    ]
    chart = charts(Record([row(loss=1.0)], RANKED, clients=clients))["charts"][1]
    assert chart["places"] == ["north", "7"]
    assert chart["series"][0]["y"] == [[0.5, None], [None, None]]


def test_a_star_stands_where_the_exported_model_is_on_every_axis():
    """Validation data choose round 4 of the second seed."""
    values = {(0, 0): 0.1, (0, 4): 0.2, (1, 0): 0.1, (1, 4): 0.8, (1, 8): 0.7}
    some = [
        row(seed=s, round=r, average_precision=value / 2, validation_average_precision=value)
        for (s, r), value in values.items()
    ]
    tested, validated = charts(Record(some, RANKED))["charts"]
    where = {"rounds": 4.0, "local steps": 40.0, "samples": 20.0, "megabytes": 4.0, "seconds": 0.5}
    assert tested["exported"] == [{"name": "FCSG", "x": where, "y": 0.4}]
    assert validated["exported"] == [{"name": "FCSG", "x": where, "y": 0.8}]


def test_an_axis_without_numbers_is_not_offered():
    """A folder of an older version, say."""
    there = row(loss=1.0)
    del there["bytes_up"]
    assert charts(Record([there]))["axes"] == ["rounds", "local steps", "samples", "seconds"]


@given(st.lists(st.floats() | st.just("") | st.none(), min_size=1))
def test_everything_can_be_written_as_json(values):
    rows = [row(round=i, loss=value) for i, value in enumerate(values)]
    json.dumps(charts(Record(rows)), allow_nan=False)
