"""What is read of a definition without importing it is what the imported object says."""

import pytest

from fedcso.algorithms import ALGORITHMS
from fedcso.codecs import CODECS
from fedcso.core.definition import Imported, Written
from fedcso.core.errors import FedcsoError
from fedcso.datasets import TABLES
from fedcso.engines import ENGINES
from fedcso.estimators import ESTIMATORS
from fedcso.experiments import EXPERIMENTS
from fedcso.problems import PROBLEMS


def rows(*tables):
    return [pytest.param(table, name, id=f"{table.kind}-{name}") for table in tables for name in table]


@pytest.mark.parametrize(("table", "name"), rows(ALGORITHMS, CODECS, PROBLEMS, ESTIMATORS, EXPERIMENTS, *TABLES))
def test_the_source_says_the_summary_of_every_row(table, name):
    assert table.definition(name).summary == Imported(table[name]).summary != ""


@pytest.mark.parametrize(("table", "name"), rows(ENGINES, *TABLES))
def test_the_source_says_the_summary_of_the_module_of_every_row(table, name):
    said = table.definition(name).module_summary
    assert said == table.module(name).__doc__.partition("\n")[0] != ""


@pytest.mark.parametrize(("table", "name"), rows(ALGORITHMS, CODECS))
def test_the_source_says_the_fields_of_every_row(table, name):
    assert table.definition(name).fields == Imported(table[name]).fields


@pytest.mark.parametrize(("table", "name"), rows(ALGORITHMS))
def test_the_source_says_when_to_use_every_method(table, name):
    assert table.definition(name).attribute("use_when") == table[name].use_when != ""


def test_fields_and_attributes_are_inherited():
    inherits = Written("fedcso.algorithms.fedadam", "FedAdam")
    assert {"base", "server_rate"} <= {*inherits.fields}
    assert Written("fedcso.runs.parser", "UsageError").attribute("exit_code") == FedcsoError.exit_code
    assert inherits.attribute("nothing") is None


def test_what_a_program_has_added_is_asked_itself():
    class Mine(ALGORITHMS["FCSG"]):
        """Mine."""

    ALGORITHMS["Mine"] = Mine
    try:
        said = ALGORITHMS.definition("Mine")
        assert (said.summary, said.fields) == ("Mine.", ["learning_rate"])
        assert said.module_summary.startswith("What is read of a definition")
    finally:
        del ALGORITHMS["Mine"]


@pytest.mark.parametrize("name", ALGORITHMS)
def test_defaults_are_the_same_written_and_imported(name):
    written, imported = ALGORITHMS.definition(name).defaults, Imported(ALGORITHMS[name]).defaults
    numbers = {key: text for key, text in imported.items() if text.replace(".", "").replace("e-", "").isdigit()}
    assert numbers
    assert {key: float(written[key]) for key in numbers} == {key: float(text) for key, text in numbers.items()}
