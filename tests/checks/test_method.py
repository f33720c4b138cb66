"""Checks of methods."""

import pytest

from fedcso import check
from tests.checks import own
from tests.examples import example


@pytest.mark.parametrize("method", [own.Method(), own.Method, example("own_algorithm").HeavyBall, "FCSG-M"])
def test_a_right_method_passes_everything(method):
    findings = check(method)
    assert findings.wrong == []
    assert len(findings.passed) == len(findings.outcomes) == 8
    assert any("a client sends x" in remark for remark in findings.remarks)


def test_settings_are_those_of_the_name_or_of_the_options():
    assert check("FCSG-M(momentum=0.5)").fine
    assert check(own.Method, learning_rate=0.1).fine
    assert "settings" in check(own.Method, speed=1).wrong[0]


MISTAKES = {
    "NotFrozen": ("settings", "it is no frozen dataclass", "@dataclass(frozen=True)"),
    "WithoutDefault": ("settings", "'friction'", "give every hyper-parameter a default"),
    "ReturnsDict": ("stages", "step returns a dict", "return a fedcso.State"),
    "ForgetsModel": ("stages", "step does not return the model", "return State({'x': x, …})"),
    "InPlace": ("stages", "step changes tensors of the state that it is given", "make new ones"),
    "Standing": ("progress", "x has not moved after 3 rounds", "return the new x"),
    "Normalised": ("engines", "away from one after the other", "elementwise arithmetic on pytrees"),
    "Noisy": ("random numbers", "draws from torch's global generator", "use the samples of the batch alone"),
    "Remembers": ("resume", "interrupted and resumed ends elsewhere", "nothing in the method itself"),
    "Refusing": ("problems", "refuses all problems", "--on my.py:task"),
}


@pytest.mark.parametrize(("name", "expected"), MISTAKES.items(), ids=MISTAKES)
def test_a_mistake_is_found(name, expected):
    findings = check(getattr(own, name))
    check_name, *words = expected
    wrong = next(one for one in findings.wrong if one.startswith(f"{check_name}: "))
    assert all(part in wrong for part in words), wrong


def test_a_method_is_tried_on_the_task_that_is_given():
    findings = check(own.Method, on=own.task())
    assert findings.fine
    assert any("on your task" in remark for remark in findings.remarks)
