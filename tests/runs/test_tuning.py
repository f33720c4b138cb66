"""What a sweep tries: every combination of a grid, the ends of a search, and which of it can be played together."""

import pytest

from fedcso.algorithms.fcsg_m import FCSGM
from fedcso.codecs import Int8
from fedcso.core.codec import full
from fedcso.core.errors import FedcsoError, InvalidValue, UnknownName
from fedcso.core.schedules import Cosine
from fedcso.runs.config import RunConfig
from fedcso.runs.methods import parse_methods
from fedcso.runs.search import Range
from fedcso.runs.tuning import SweepConfig, stackable


def sweep(*methods, **settings):
    return SweepConfig(RunConfig("nested_quadratic", methods=parse_methods(methods)), **settings)


def points(config):
    return {method.text: [point.values for point in config.points(method)] for method in config.run.methods}


def test_grid_points_are_all_combinations_of_the_values_that_a_method_has():
    config = sweep("FCSG", "FCSG-M(momentum=0.1)", grid={"learning_rate": "0.1,0.2", "momentum": "0.5"})
    assert points(config) == {
        "FCSG": [{"learning_rate": 0.1}, {"learning_rate": 0.2}],
        "FCSG-M(momentum=0.1)": [
            {"learning_rate": 0.1, "momentum": 0.5},
            {"learning_rate": 0.2, "momentum": 0.5},
        ],
    }
    (_, spec) = config.run.methods
    assert [point.method.algorithm for point in config.points(spec)] == [FCSGM(0.1, 0.5), FCSGM(0.2, 0.5)]


SPELLINGS = [
    ["learning_rate=0.1,cosine(0.1, 5)", "momentum=0.5,0.9"],
    ["learning_rate=0.1,cosine(0.1, 5);momentum=0.5,0.9"],
    ["learning_rate=0.1,cosine(0.1, 5) ; momentum = 0.5, 0.9"],
    ["learning_rate=0.1", "momentum=0.5,0.9", "learning_rate=cosine(0.1, 5)"],
]


@pytest.mark.parametrize("grid", SPELLINGS)
def test_a_grid_is_several_options_or_one_with_semicolons(grid):
    config = SweepConfig.from_flat({"problem": "nested_quadratic", "algorithm": "FCSG-M", "grid": grid})
    rates, momenta = [0.1, Cosine(0.1, 5)], [0.5, 0.9]
    expected = [{"learning_rate": rate, "momentum": momentum} for rate in rates for momentum in momenta]
    assert points(config) == {"FCSG-M": expected}
    assert SweepConfig.from_flat(config.flat()) == config


OWN = """
from dataclasses import dataclass
from fedcso.algorithms import FCSG

@dataclass(frozen=True)
class Mine(FCSG):
    trials: int = 3
    metric: str = "mine"
"""


def test_the_settings_of_a_sweep_are_not_those_of_a_method(tmp_path):
    (tmp_path / "mine.py").write_text(OWN)
    flat = {"problem": "nested_quadratic", "algorithm": f"{tmp_path / 'mine.py'}:Mine", "trials": 5, "metric": "loss"}
    config = SweepConfig.from_flat(flat | {"grid": "learning_rate=0.1,0.2"})
    assert (config.trials, config.metric) == (5, "loss")
    assert config.run.hyper_parameters == {}
    (spec,) = config.run.methods
    assert [(one.method.algorithm.trials, one.method.algorithm.metric) for one in config.points(spec)] == [
        (3, "mine")
    ] * 2


def test_ranges_come_back_from_a_file():
    search = {"learning_rate": Range(1e-05, 0.1), "momentum": Range(0.1, 1.0)}
    config = sweep("FCSG-M", search=search, trials=3, metric="loss", tuning_seeds=(5, 6))
    assert SweepConfig.from_flat(config.flat()) == config
    (spec,) = config.run.methods
    assert [point.values for point in config.corners(spec)] == [
        {"learning_rate": 1e-05, "momentum": 0.1},
        {"learning_rate": 0.1, "momentum": 1.0},
    ]


@pytest.mark.parametrize(
    ("settings", "error", "told"),
    [
        ({}, FedcsoError, "nothing to try"),
        ({"grid": {"momentum": "0.1"}, "search": {"momentum": Range(0.1, 0.2)}}, FedcsoError, "nothing to try"),
        ({"grid": {"momentun": "0.1"}}, UnknownName, "did you mean momentum"),
        ({"grid": {"tracking": "0.1"}}, InvalidValue, "a hyper-parameter of FCSG-M, FCSG"),
        ({"search": {"momentum": Range(0.1, 0.2)}}, InvalidValue, "ranges for hyper-parameters of FCSG"),
        ({"search": {"learning_rate": Range(0.1, 0.2)}, "trials": 0}, InvalidValue, "trials = 0"),
    ],
)
def test_what_can_not_be_tried_is_refused(settings, error, told):
    with pytest.raises(error, match=told):
        sweep("FCSG-M", "FCSG", **settings)


def test_only_settings_that_differ_in_real_numbers_are_played_together():
    config = sweep("FCSG-M", grid={"learning_rate": "0.1,cosine(0.1, 5)", "send_u": "full,every(2)"})
    (spec,) = config.run.methods
    groups = [[spec.spell(point.method) for point in group] for group in stackable(config.points(spec))]
    assert [len(group) for group in groups] == [2, 2]
    assert all("every(2)" in text for text in groups[1])


def test_a_method_without_u_is_tried_without_ways_to_send_it():
    config = sweep("FCSG", "FCSG-M", grid={"send_u": "full,int8"})
    assert points(config) == {"FCSG": [{}], "FCSG-M": [{"send_u": full}, {"send_u": Int8()}]}
    with pytest.raises(InvalidValue, match=r"a hyper-parameter of FCSG$"):
        sweep("FCSG", grid={"send_u": "full,int8"})
