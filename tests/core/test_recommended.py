"""What a problem recommends is used unless something else is given, and only where it fits."""

import pytest

from fedcso.algorithms import ALGORITHMS
from fedcso.core.recommended import Recommended, recommended, with_methods, with_plan
from fedcso.core.task import Task
from fedcso.problems import PROBLEMS
from fedcso.runs.options import read_options
from tests.command_line import call


def test_the_parts_are_declared_one_by_one_in_any_order():
    def make() -> Task: ...

    assert recommended(make) == Recommended()
    with_methods("FedAvg", learning_rate=0.3)(with_plan(rounds=3)(make))
    assert recommended(make) == Recommended({"rounds": 3}, ("FedAvg",), {"learning_rate": 0.3})


def options(*arguments):
    return read_options("run", "", list(arguments))


@pytest.mark.parametrize(
    ("problem", "methods"),
    [
        ("cross_entropy", ["FedAvg"]),
        ("auroc", ["CODA+"]),
        ("auprc", ["FCSG", "FCSG-M", "Acc-FCSG-M"]),
        ("classification", ["FCSG", "FCSG-M", "Acc-FCSG-M"]),
    ],
)
def test_each_problem_has_its_methods(problem, methods):
    assert options(problem)["algorithm"] == methods
    assert options(problem, "--algorithm", "SCAFFOLD")["algorithm"] == ["SCAFFOLD"]


def test_settings_are_for_methods_that_have_them_and_give_way():
    names = ("learning_rate", "momentum", "clip", "margin", "sigmoid")
    assert [options("auprc")[name] for name in names] == ["cosine(1)", 0.3, 1.0, 1.0, False]
    assert options("auprc", "--algorithm", "FCSG")["momentum"] is None
    assert options("auprc", "--learning-rate", "0.1")["learning_rate"] == 0.1
    assert options("classification")["learning_rate"] is None


def test_the_help_shows_them():
    text = " ".join(call("run", "auprc", "--help").out.split())
    assert "(default: cosine(1))" in text
    assert "(default: 0.3)" in text


def test_what_is_recommended_exists():
    for name in PROBLEMS:
        assert set(recommended(PROBLEMS[name]).methods) <= set(ALGORITHMS)
        assert options(name)["problem"] == name
