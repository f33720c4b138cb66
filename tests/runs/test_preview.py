"""Previews of studies: nothing is run but short rounds, and the estimate grows with what would be done."""

import time
from dataclasses import replace

import pytest

from fedcso.algorithms import FCSG
from fedcso.core.plan import Plan
from fedcso.runs.preview import Previewed, estimate_seconds, peak_memory, previewing
from fedcso.runs.progress import Lines
from fedcso.runs.study import Study, Unit
from fedcso.runs.tracking import TRACKERS
from tests.helpers import NestedQuadratic, Task


class Slow(NestedQuadratic):
    """A millisecond for each gradient."""

    def outer(self, y, xi):
        time.sleep(0.001)
        return super().outer(y, xi)


def unit(rounds: int = 1000, steps: int = 10) -> Unit:
    problem = Slow(dimension=2)
    plan = Plan(rounds=rounds, local_steps=steps, evaluate_every=100)
    return Unit("slow", Task(problem, problem.centres(2)), plan, [FCSG(0.01)], [0], engine="reference")


def test_the_estimate_is_of_the_right_size():
    """1000 rounds × 10 steps × 2 clients × 1 ms are 20 s; sleeping takes at least as long as asked, rarely much "
    "longer."""
    assert 20 <= estimate_seconds(unit()) < 200


def test_twice_the_rounds_take_about_twice_as_long():
    one, two = (estimate_seconds(unit(rounds)) for rounds in (1000, 10000))
    assert 4 < two / one < 25


def test_a_study_is_looked_at_and_not_executed(tmp_path):
    study = Study([unit(), replace(unit(), name="other")], tmp_path)
    with previewing(), pytest.raises(Previewed) as looked:
        study.execute(Lines(), TRACKERS["none"](tmp_path))
    assert [one.unit.name for one in looked.value.estimates] == ["slow", "other"]
    assert [one.runs for one in looked.value.estimates] == [1, 1]
    assert list(tmp_path.iterdir()) == []


def test_afterwards_studies_are_executed_again(tmp_path):
    with previewing():
        pass
    short = replace(unit(), plan=Plan(rounds=1, local_steps=1))
    assert Study([short], tmp_path).execute(Lines(), TRACKERS["none"](tmp_path))["slow"]


def test_the_memory_of_this_process_is_known():
    assert 50 < peak_memory() < 1e6
