"""Registries: rows are loaded when they are first used, and a wrong name suggests the nearest ones."""

import subprocess
import sys

import pytest

from fedcso import algorithms, problems
from fedcso.algorithms import ALGORITHMS
from fedcso.core.errors import UnknownName
from fedcso.core.registry import Registry
from fedcso.datasets import TABLES
from fedcso.engines import ENGINES
from fedcso.estimators import ESTIMATORS
from fedcso.experiments import EXPERIMENTS
from fedcso.problems import PROBLEMS

EVERY = [
    pytest.param(table, name, id=f"{table.kind}-{name}")
    for table in (ALGORITHMS, PROBLEMS, ESTIMATORS, ENGINES, EXPERIMENTS, *TABLES)
    for name in table
]


@pytest.fixture
def table():
    return Registry("schedule", "fedcso.core", {"cosine": "schedules:Cosine", "exponential": "schedules:Exponential"})


@pytest.mark.parametrize(("table", "name"), EVERY)
def test_every_row_leads_to_something(table, name):
    assert table[name] is not None
    assert table.module(name).__doc__


def test_a_row_is_what_it_names(table):
    from fedcso.core import schedules

    assert table["cosine"] is schedules.Cosine
    assert table.module("cosine") is schedules
    assert dict(table) == {"cosine": schedules.Cosine, "exponential": schedules.Exponential}
    assert len(table) == 2


def test_a_name_that_is_not_there_suggests_the_nearest(table):
    with pytest.raises(UnknownName, match=r"^unknown schedule 'cosin'; did you mean cosine\? \(known: cosine"):
        table["cosin"]
    assert table.get("cosin") is None
    assert "cosin" not in table
    with pytest.raises(UnknownName):
        del table["cosin"]


def test_a_program_can_add_and_replace_things(table):
    table["mine"] = EVERY
    assert table["mine"] is EVERY
    assert list(table) == ["cosine", "exponential", "mine"]
    table["cosine"] = EVERY
    assert table["cosine"] is EVERY
    del table["cosine"]
    assert list(table) == ["exponential", "mine"]


def test_an_added_object_has_a_module(table):
    table["mine"] = UnknownName
    assert table.module("mine").__name__ == "fedcso.core.errors"


def test_nothing_is_loaded_before_it_is_asked_for():
    script = (
        "import sys\nfrom fedcso.algorithms import ALGORITHMS\n"
        "loaded = lambda: [name for name in ('fcsg', 'sox') if f'fedcso.algorithms.{name}' in sys.modules]\n"
        "before = loaded(), 'FCSG' in ALGORITHMS, len(ALGORITHMS)\nALGORITHMS['FCSG']\nprint(before[0], loaded())"
    )
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[] ['fcsg']"


@pytest.mark.parametrize(("package", "name"), [(algorithms, "FCSGM"), (problems, "AUPRC"), (problems, "MAML")])
def test_a_package_has_the_classes_of_its_files(package, name):
    found = getattr(package, name)
    assert found.__name__ == name
    assert found.__module__.startswith(package.__name__)


def test_rows_stand_in_groups_and_what_a_program_adds_in_none():
    table = Registry.grouped(
        "algorithm", "fedcso.algorithms", {"one": {"A": "fcsg:FCSG"}, "two": {"B": "fcsg_m:FCSGM"}}
    )
    assert table.groups() == {"one": ["A"], "two": ["B"]}
    assert (table["A"], table["B"]) == (ALGORITHMS["FCSG"], ALGORITHMS["FCSG-M"])
    table["C"] = object
    assert table.groups() == {"one": ["A"], "two": ["B"], "": ["C"]}


@pytest.mark.parametrize("package", [algorithms, problems])
@pytest.mark.parametrize("name", ["Task", "Nothing", "require_positive"])
def test_a_package_has_no_other_names_from_its_files(package, name):
    with pytest.raises(AttributeError, match=f"has no attribute '{name}'"):
        package.__getattr__(name)


@pytest.mark.parametrize("kind", ALGORITHMS.values(), ids=ALGORITHMS)
def test_every_method_can_be_imported_from_the_package(kind):
    assert getattr(algorithms, kind.__name__) is kind
