"""Which model is chosen: by validation data, else by the training objective, never by test data."""

import math
from dataclasses import replace

import pytest

from fedcso.core.judge import Judge
from fedcso.core.metric import DeclaredMetrics, Metric
from fedcso.engines.choice import choose, choose_by_seed, choose_exported, deciding_metric
from fedcso.engines.loop import declare
from tests.helpers import classification, nested_quadratic

F1 = Metric("f1", higher_is_better=True, share=True)
VALIDATED = DeclaredMetrics([F1.on_test(), F1.on_validation()], "validation_f1", validated=True, headline="f1")
JUDGE = Judge(lambda x, data: {"f1": 1.0}, [F1])


def rows(values, algorithm="A", seed=0, name="validation_f1"):
    return [{"algorithm": algorithm, "seed": seed, "round": r, name: value} for r, value in enumerate(values)]


# ------------------------------------------------------------------------------------- what decides

JUDGED, EXACT = replace(classification(), judge=JUDGE, test="test"), replace(nested_quadratic(), judge=JUDGE)


@pytest.mark.parametrize(
    ("task", "name", "validated"),
    [
        (replace(JUDGED, validation="validation"), "validation_f1", True),
        (replace(EXACT, validation="validation"), "validation_f1", True),
        (EXACT, "loss", False),
        (JUDGED, "train_loss", False),
        (replace(JUDGED, judge=Judge(lambda x, data: {"f1": 1.0}), validation="validation"), "train_loss", False),
    ],
    ids=["validation", "validation before F", "F", "training loss", "nothing declared"],
)
def test_validation_decides_then_the_objective_then_the_training_loss(task, name, validated):
    assert deciding_metric(task).name == name
    assert (declare(task).deciding, declare(task).validated) == (name, validated)
    assert declare(task)[name].higher_is_better == (name == "validation_f1")


def test_where_there_is_room_for_one_metric_it_is_the_selecting_one_on_test_data_if_there_are_any():
    assert declare(replace(JUDGED, validation="validation")).headline == "f1"
    assert declare(replace(JUDGED, test=None, validation="validation")).headline == "validation_f1"
    assert declare(EXACT).headline == "loss"


# ------------------------------------------------------------------------------- within and between runs


def test_the_best_evaluation_is_chosen_and_the_first_of_equals():
    assert choose(rows([0.1, 0.7, 0.3, 0.7]), F1.on_validation())["round"] == 1
    assert choose(rows([3.0, 1.0, 2.0], name="loss"), Metric("loss", higher_is_better=False))["round"] == 1


def test_while_it_is_undefined_the_newest_counts():
    assert choose(rows([math.nan, math.nan]), F1.on_validation())["round"] == 1
    assert choose(rows([math.nan, 0.1, math.nan]), F1.on_validation())["round"] == 1


def test_evaluations_without_the_deciding_metric_are_passed_over():
    """They are of an earlier version, read from a table or from a checkpoint."""
    some = [*rows([9.0], name="f1"), *rows([""]), *rows([0.2])]
    assert choose(some, F1.on_validation())["validation_f1"] == 0.2
    assert choose(some[:2], F1.on_validation()) is None
    assert choose_exported(some[:2], VALIDATED) == {}


def test_every_run_chooses_for_itself():
    some = [*rows([0.1, 0.5], seed=3), *rows([0.6, 0.2], seed=4), *rows([0.3, 0.4], "B")]
    found = choose_by_seed(some, VALIDATED)
    assert {name: {seed: row["round"] for seed, row in by.items()} for name, by in found.items()} == {
        "A": {3: 1, 4: 0},
        "B": {0: 1},
    }


def test_the_seed_that_is_exported_is_the_one_validation_data_choose():
    some = [*rows([0.1, 0.5], seed=3), *rows([0.6, 0.2], seed=4), *rows([0.6], seed=5)]
    assert choose_exported(some, VALIDATED)["A"]["seed"] == 4
    undefined = [*rows([math.nan], seed=3), *rows([math.nan], seed=4)]
    assert choose_exported(undefined, VALIDATED)["A"]["seed"] == 3


def test_without_validation_data_it_is_the_first_seed():
    loss = Metric("loss", higher_is_better=False)
    declared = DeclaredMetrics([loss], "loss", validated=False, headline="loss")
    some = [*rows([3.0, 2.0], seed=3, name="loss"), *rows([1.0], seed=4, name="loss")]
    assert {key: choose_exported(some, declared)["A"][key] for key in ("seed", "round")} == {"seed": 3, "round": 1}


def test_nothing_is_chosen_where_nothing_is_declared():
    some, undeclared = rows([0.1, 0.5]), DeclaredMetrics()
    assert choose_by_seed(some, undeclared) == choose_exported(some, undeclared) == {}
