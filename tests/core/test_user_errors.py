"""Errors in a user's code: their line, their function, the shapes; nothing is said of others' code."""

import pytest
import torch

from fedcso.core import user_code, user_errors
from fedcso.core.user_errors import describe_error, describe_shapes, explain

SOURCE = """import torch


def inner(x, xi, *, eta):
    return helper(eta["a"].mean(-2), x)


def helper(value, x):
    return value @ x.reshape(1, 2)


def text(x):
    raise ValueError("first line" + chr(10) + "second line")
"""


@pytest.fixture
def own(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(SOURCE)
    monkeypatch.setattr(user_errors, "LOADED", {})
    monkeypatch.chdir(tmp_path)

    def call(name, *given, **named):
        with pytest.raises(Exception) as raised:  # noqa: PT011
            user_code.load("problem", f"mine.py:{name}")(*given, **named)
        return raised.value

    return call


def test_the_innermost_line_of_the_user_is_named_with_shapes(own):
    error = own("inner", torch.ones(2), None, eta={"a": torch.ones(3, 4, 2)})
    assert describe_error(error) == (
        "mine.py:9, in helper(value (3, 2), x (2,)): RuntimeError: mat1 and mat2 shapes cannot be multiplied "
        "(3x2 and 1x2)"
    )


def test_only_the_first_line_of_a_message_is_shown(own):
    assert describe_error(own("text", 1)) == "mine.py:13, in text(): ValueError: first line"


def test_an_error_elsewhere_is_explained_only_if_a_users_code_was_loaded(own, monkeypatch):
    def ours():
        torch.ones(2).reshape(3)

    monkeypatch.setattr(user_errors, "_is_own", lambda file: False)
    with pytest.raises(RuntimeError) as raised:
        ours()
    assert explain(raised.value) is None
    monkeypatch.setattr(user_errors, "LOADED", {"/mine.py": "mine.py:task"})
    said = str(explain(raised.value))
    assert said.startswith("RuntimeError: shape '[3]' is invalid")
    assert said.endswith("fedcso check mine.py:task")


def test_our_files_and_those_of_packages_are_not_the_users():
    assert not user_errors._is_own(user_errors.__file__)
    assert not user_errors._is_own(torch.__file__)
    assert not user_errors._is_own(pytest.__file__)
    assert not user_errors._is_own("<string>")
    assert user_errors._is_own(__file__)


def test_shapes_of_trees():
    assert describe_shapes(torch.ones(2, 3)) == "(2, 3)"
    assert describe_shapes({"w": torch.ones(2), "b": [torch.ones(()), 3]}) == "{w: (2,), b: ((), )}"
    assert describe_shapes(3) == describe_shapes([]) == describe_shapes({"a": 1}) == ""
