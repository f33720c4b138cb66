"""Compiled steps give what stacked ones give, say when they can't be had, and count the same."""

import os
import shutil

import pytest
import torch

from fedcso.algorithms import FCSG, FCSGM, AccFCSGM, FedAdam, FedProx, LocalSCGD
from fedcso.codecs import BFloat16, Inferred, Occasional
from fedcso.core.errors import FedcsoError
from fedcso.core.plan import Plan
from fedcso.core.problem import Problem
from fedcso.core.schedules import Cosine
from fedcso.core.task import Task
from fedcso.engines import run, run_grid
from fedcso.problems import InvariantLogistic

needs_compiler = pytest.mark.skipif(
    not shutil.which(os.environ.get("CXX", "g++")), reason="needs a C++ compiler for torch.compile"
)
# torch.compile imports parts of torch that others of its parts call old.
pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")

PROBLEM = InvariantLogistic(dimension=3, dtype=torch.float64)
CLIENTS = PROBLEM.clients(2)
PLAN = Plan(rounds=3, local_steps=2, initial_batch=4, inner_batch=2)


@needs_compiler
def test_they_equal_stacked_ones_setting_by_setting():
    """Also of a method inside others, one of which changes how it moves."""
    settings = [FedProx(FedAdam(AccFCSGM(0.1, 0.5), 0.1), 0.5), FedProx(FedAdam(AccFCSGM(0.05, 0.1), 0.1), 0.1)]
    expected = run_grid(settings, Task(PROBLEM, CLIENTS), PLAN, [0, 1])
    found = run_grid(settings, Task(PROBLEM, CLIENTS), PLAN, [0, 1], engine="compiled")
    for theirs, ours in zip(expected, found, strict=True):
        for a, b in zip(theirs, ours, strict=True):
            assert torch.allclose(a.last, b.last, rtol=1e-12, atol=1e-12)
            assert torch.allclose(a.output, b.output, rtol=1e-12, atol=1e-12)
            assert a.costs == b.costs
            assert [row["train_loss"] for row in b.rows[1:]] == pytest.approx([row["train_loss"] for row in a.rows[1:]])


@needs_compiler
def test_steps_beside_the_first_and_the_output_step_are_not_compiled_and_are_the_same():
    """The first batch has the size of all others, so the first step is drawn together with others."""
    plan = Plan(rounds=3, local_steps=5, inner_batch=2)
    expected, found = (run(FCSGM(0.1, 0.5), Task(PROBLEM, CLIENTS), plan, engine=e) for e in ("reference", "compiled"))
    assert torch.allclose(found.last, expected.last, rtol=1e-12, atol=1e-12)
    assert torch.allclose(found.output, expected.output, rtol=1e-12, atol=1e-12)
    assert found.costs == expected.costs


@needs_compiler
@pytest.mark.parametrize("codec", [BFloat16(), Occasional(2), Inferred()], ids=lambda one: type(one).__name__)
def test_messages_are_written_by_the_codec(codec):
    expected = run(FCSGM(0.1, 0.5), Task(PROBLEM, CLIENTS), PLAN, codec=codec, engine="stacked")
    found = run(FCSGM(0.1, 0.5), Task(PROBLEM, CLIENTS), PLAN, codec=codec, engine="compiled")
    assert torch.allclose(found.last, expected.last, rtol=1e-12, atol=1e-12)
    assert found.costs == expected.costs


@needs_compiler
def test_a_number_that_is_not_finite_is_named_as_ever():
    with pytest.raises(FedcsoError, match="non-finite loss at client 0"):
        run(FCSG(1e300), Task(PROBLEM, CLIENTS), Plan(rounds=4, local_steps=2), engine="compiled")


@pytest.mark.parametrize(
    ("algorithm", "problem", "plan", "told"),
    [
        (LocalSCGD(), PROBLEM, PLAN, "not all alike"),
        (FCSGM(Cosine(0.1, 100)), PROBLEM, PLAN, "not all alike"),
    ],
)
def test_what_cannot_be_compiled_is_refused_with_the_reason(algorithm, problem, plan, told):
    with pytest.raises(FedcsoError, match=told):
        run(algorithm, Task(problem, CLIENTS), plan, engine="compiled")


def test_without_a_compiler_it_says_so(monkeypatch):
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(FedcsoError, match="no-such-compiler"):
        run(FCSG(), Task(PROBLEM, CLIENTS), PLAN, engine="compiled")


def test_a_problem_without_a_formula_is_refused():
    class Bare(InvariantLogistic):
        closed_form = Problem.closed_form

    with pytest.raises(FedcsoError, match="no formula"):
        run(FCSG(), Task(Bare(), CLIENTS), PLAN, engine="compiled")
