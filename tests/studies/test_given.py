"""Runs of objects that only a program has: a task, methods; what is said where a file can't describe them."""

from dataclasses import dataclass

import pytest

import fedcso
from fedcso.algorithms import FCSG, FCSGM
from fedcso.core.schedules import Cosine
from tests.command_line import BAD_INPUT, assert_same_contents, call, interrupt_after, without_drawing

SMALL = {"rounds": 3, "local_steps": 2, "seeds": 2}


@pytest.fixture
def blank(tmp_path, monkeypatch):
    without_drawing(monkeypatch)
    return tmp_path


def task(clients=3):
    return fedcso.PROBLEMS["nested_quadratic"](clients=clients)


def as_in_a_notebook():
    """A class that no file defines."""

    @dataclass(frozen=True)
    class Mine(FCSG):
        friction: float = 0.5

    return Mine(0.1)


def test_a_task_gives_the_numbers_of_its_name(blank):
    named = fedcso.run("nested_quadratic", "FCSG", clients=3, out=blank, **SMALL)
    given = fedcso.run(task(), "FCSG", out=blank, **SMALL)
    columns = [name for name in named.metrics if name != "seconds"]
    assert named.metrics[columns].equals(given.metrics[columns])
    assert given.config["problem"] == "<NestedQuadratic>"


def test_a_method_given_as_an_object_is_resumed_by_its_name(blank):
    method = FCSGM(learning_rate=Cosine(0.1), momentum=0.5)
    found = fedcso.run("nested_quadratic", [method, "FCSG"], clients=3, out=blank, **SMALL)
    assert found.table["algorithm"][0].startswith("FCSG-M(learning_rate=cosine(")
    assert call("resume", found.folder).code == 0


def test_an_option_does_not_change_a_method_that_is_an_object(blank):
    options = {"clients": 3, "out": blank, "learning_rate": 0.01} | SMALL
    found = fedcso.run("nested_quadratic", [FCSG(0.1), "FCSG"], **options)
    alone = fedcso.run("nested_quadratic", FCSG(0.1), **(options | {"learning_rate": None}))
    ours = found.metrics[found.metrics["algorithm"] == "FCSG(learning_rate=0.1)"]["loss"]
    assert list(ours) == list(alone.metrics["loss"])


def test_resuming_needs_the_objects_again(blank, monkeypatch):
    options = {"out": blank} | SMALL
    expected = fedcso.run(task(), as_in_a_notebook(), **options)
    with monkeypatch.context() as patch:
        interrupt_after(patch, rounds=1)
        with pytest.raises(fedcso.FedcsoError, match="fedcso resume"):
            fedcso.run(task(), as_in_a_notebook(), **options)
    (folder,) = [path for path in blank.iterdir() if path != expected.folder]
    outcome = call("resume", folder)
    assert outcome.code == BAD_INPUT
    assert "fedcso.resume(FOLDER, task=TASK, algorithms=[…])" in outcome.err
    with pytest.raises(fedcso.FedcsoError, match=r"algorithm = '<Mine>.* was an object"):
        fedcso.resume(folder, task=task())
    with pytest.raises(fedcso.FedcsoError, match="other data"):
        fedcso.resume(folder, task=task(clients=4), algorithms=[as_in_a_notebook()])
    with pytest.raises(fedcso.InvalidValue, match="the task of <NestedQuadratic>"):
        fedcso.resume(folder, task=fedcso.PROBLEMS["invariant_logistic"](), algorithms=[as_in_a_notebook()])
    assert fedcso.resume(folder, task=task(), algorithms=[as_in_a_notebook()]).status == "done"
    assert_same_contents(folder, expected.folder)


def test_other_processes_can_not_have_them(blank):
    with pytest.raises(fedcso.InvalidValue, match=r"task = '<NestedQuadratic>' must be in a file"):
        fedcso.run(task(), "FCSG", engine="distributed", out=blank, **SMALL)
    assert not list(blank.iterdir())


def test_an_own_class_in_a_file_is_named_by_it(tmp_path, blank):
    file = tmp_path / "own.py"
    file.write_text(
        "from dataclasses import dataclass\nfrom fedcso.algorithms import FCSG\n"
        "@dataclass(frozen=True)\nclass Mine(FCSG):\n    friction: float = 0.5\n"
    )
    found = fedcso.run("nested_quadratic", f"{file}:Mine", clients=3, out=blank / "runs", **SMALL)
    from fedcso.core import user_code

    again = fedcso.run(
        "nested_quadratic", user_code.load("algorithm", f"{file}:Mine")(), clients=3, out=blank / "runs", **SMALL
    )
    assert again.config["algorithm"][0].startswith(f"{file}:Mine(")
    assert list(again.metrics["loss"]) == list(found.metrics["loss"])


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (["nested_quadratci"], {}, "did you mean nested_quadratic"),
        (["nested_quadratic", "FCGS"], {}, "did you mean FCSG"),
        (["nested_quadratic"], {"roundz": 3}, "unknown option 'roundz'; did you mean rounds"),
        (["nested_quadratic"], {"rounds": "many"}, "rounds = 'many' must be a whole number"),
        (["nested_quadratic"], {"rounds": 0}, "rounds = 0 must be a whole number, at least 1"),
        (["nested_quadratic"], {"clients": "few"}, "clients = 'few' must be a whole number"),
        (["nested_quadratic"], {"learning_rate": -1}, "learning_rate = -1 must be a finite number above 0"),
        (["nested_quadratic", "FCSG"], {"momentum": 0.1}, "momentum = 0.1 must be left out"),
        (["nested_quadratic", []], {"seeds": [1, 1]}, "seeds"),
        ([task()], {"clients": 3}, "unknown option 'clients'"),
    ],
)
def test_mistakes_are_said_as_on_the_command_line(arguments, options, message, tmp_path):
    with pytest.raises(fedcso.FedcsoError, match=message.replace("(", r"\(")):
        fedcso.run(*arguments, out=tmp_path / "runs", **options)
    assert not (tmp_path / "runs").exists()
