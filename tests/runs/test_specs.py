"""Names and values from a command line, and the objects they become."""

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedcso.codecs import BFloat16, Inferred, Int8, Occasional
from fedcso.core.codec import full
from fedcso.core.errors import FedcsoError, InvalidValue, UnknownName
from fedcso.core.schedules import Cosine, Exponential, InverseSqrt
from fedcso.core.task import Task
from fedcso.problems import PROBLEMS
from fedcso.runs import specs
from fedcso.runs.config import parse_seeds
from tests.core.test_schedules import any_schedule

VALUES = {
    "0.5": 0.5,
    "1": 1,
    " 1e-3 ": 1e-3,
    "-2": -2,
    "cosine(0.1, 5000)": Cosine(0.1, 5000),
    "cosine(0.1, steps=5, floor=0.2)": Cosine(0.1, 5, 0.2),
    "cosine(0.1)": Cosine(0.1),
    "cosine(0.1, floor=0.2)": Cosine(0.1, floor=0.2),
    "exponential(1, 0.5)": Exponential(1, 0.5),
    "inverse_sqrt(start=2.0)": InverseSqrt(2.0),
}


@pytest.mark.parametrize("text", VALUES)
def test_a_value_is_a_number_or_a_schedule(text):
    assert specs.parse_value("learning_rate", text) == VALUES[text]


@pytest.mark.parametrize("value", [0.5, 3, Cosine(0.1, 5), None])
def test_what_is_no_text_is_the_value_itself(value):
    assert specs.parse_value("learning_rate", value) is value


@pytest.mark.parametrize("text", ["high", "", "1 2", "f'{1}'", "1 + x", "(lambda: 1)", "os.remove", "a.b(1)"])
def test_what_is_no_value_is_refused_with_the_field(text):
    with pytest.raises(InvalidValue, match=r"learning_rate = .*a number, or a schedule"):
        specs.parse_value("learning_rate", text)


@pytest.mark.parametrize("text", ["cosine()", "cosine(1, 2, 3, 4)", "cosine(1, 2, top=3)", "cosine('a', 3)"])
def test_a_schedule_that_is_called_wrongly_is_refused_with_the_field(text):
    with pytest.raises(InvalidValue, match=r"learning_rate = .cosine\("):
        specs.parse_value("learning_rate", text)


@pytest.mark.parametrize("text", ["__import__('os')", "eval('1')", "print(1)"])
def test_nothing_but_schedules_is_called(text):
    with pytest.raises(UnknownName, match="unknown schedule"):
        specs.parse_value("learning_rate", text)


def message_of(parse, text):
    """What is said about a text that is refused; the field for one that is not."""
    try:
        parse("momentum", text)
    except FedcsoError as error:
        return str(error)
    return "momentum"


@given(st.text(max_size=20))
def test_any_text_is_a_value_or_an_error_that_helps(text):
    message = message_of(specs.parse_value, text)
    assert "momentum" in message or "schedule" in message


@given(st.text(alphabet="[](){},:=.'\"1e-x ", max_size=12))
def test_any_punctuation_is_a_list_of_values_or_an_error_that_helps(text):
    message = message_of(specs.parse_several, text)
    assert "momentum" in message or "schedule" in message


@given(any_schedule | st.floats(allow_nan=False, allow_infinity=False) | st.integers())
def test_what_is_spelt_is_parsed_again(value):
    assert specs.parse_value("learning_rate", specs.spell(value)) == value


def test_several_values_may_be_schedules():
    assert specs.parse_several("x", "0.1, cosine(0.1, 5), 2") == [0.1, Cosine(0.1, 5), 2]


@pytest.mark.parametrize(("text", "value"), [("true", True), ("False", False)])
def test_a_value_may_be_true_or_false(text, value):
    assert specs.parse_value("nesterov", text) is value


def test_words_are_taken_as_they_are_where_they_are_wanted():
    assert specs.parse_words("mode", "as fast as can be") == "as fast as can be"
    words = ["fast-ish", "slow", "every(5)", "8"]
    assert specs.parse_several("mode", "fast-ish, 'slow', every(5), 8", specs.parse_words) == words


WAYS = {
    "full": full,
    "bfloat16": BFloat16(),
    "'int8'": Int8(),
    "every(3)": Occasional(3),
    " every( 3 ) ": Occasional(3),
    "inferred": Inferred(),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_way_to_send_u_is_a_codec_and_spelt_as_it_was_asked_for(way):
    codec = specs.parse_codec("send_u", way)
    assert codec == WAYS[way]
    assert specs.spell(codec) == way.replace(" ", "").strip("'")


@pytest.mark.parametrize("way", ["int4", "every", "every(0)", "every(x)", "every(1, 2)", "every(2)(3)", "", "3", "a.b"])
def test_an_unknown_way_is_refused(way):
    with pytest.raises(InvalidValue, match="send_u"):
        specs.parse_codec("send_u", way)


# ------------------------------------------------------------------------------------------- tasks


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_built_in_problem_is_found_by_its_name(name):
    assert specs.task_maker(name) is PROBLEMS[name]


def test_a_task_is_taken_as_it_is(tmp_path):
    (tmp_path / "mine.py").write_text("from fedcso import Task\ntask = Task(problem=None, clients=[1, 2])\n")
    task = specs.make_task(specs.task_maker(f"{tmp_path / 'mine.py'}:task"), {})
    assert isinstance(task, Task)
    assert task.clients == [1, 2]


def test_a_file_may_define_dataclasses(tmp_path):
    (tmp_path / "mine.py").write_text(
        "from __future__ import annotations\nfrom dataclasses import dataclass\n"
        "@dataclass\nclass Data:\n    size: int = 3\n"
        "def task(size: int = 2):\n    return Data(size)\n"
    )
    assert specs.task_maker(f"{tmp_path / 'mine.py'}:task")().size == 2


def test_the_line_that_raised_is_named(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text("def helper():\n    return 1 / 0\n\nhelper()\n")
    with pytest.raises(FedcsoError, match=r"mine\.py, line 2, raised ZeroDivisionError: division by zero"):
        specs.task_maker(f"{tmp_path / 'mine.py'}:task")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FedcsoError, match=r"mine\.py, line 2, raised ZeroDivisionError: division by zero"):
        specs.task_maker("mine.py:task")


def test_the_search_path_is_left_as_it_was():
    before = list(sys.path)
    with pytest.raises(FedcsoError):
        specs.task_maker("no_such_module:task")
    assert sys.path == before


# ------------------------------------------------------------------------------- seeds and options

SEEDS = {"3": [0, 1, 2], "5,6": [5, 6], "[5, 6]": [5, 6], "[4]": [4], "7,": None, "0": None, "": None, "1,1": None}


@pytest.mark.parametrize("text", SEEDS)
def test_seeds_are_a_number_or_a_list(text):
    if SEEDS[text] is None:
        with pytest.raises(InvalidValue, match="seeds"):
            parse_seeds(text)
    else:
        assert parse_seeds(text) == SEEDS[text]


@pytest.mark.parametrize(("value", "chosen"), [(2, [0, 1]), ([4, 9], [4, 9])])
def test_seeds_may_come_from_a_file(value, chosen):
    assert parse_seeds(value) == chosen


@pytest.mark.parametrize("value", [-1, [], [1, 1], [-1], None, 1.5])
def test_other_seeds_are_refused(value):
    with pytest.raises(InvalidValue, match="seeds"):
        parse_seeds(value)
