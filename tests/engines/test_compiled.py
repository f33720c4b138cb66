"""Compiled steps give what the reference gives, say when they can't be had, and count the same.

Compiling takes long, so one test does it; the others run the traced graph as it is.
"""

import os
import shutil
from dataclasses import replace

import pytest
import torch

from fedcso.algorithms import FCSG, FCSGM, AccFCSGM, FedAdam, FedProx, LocalSCGD
from fedcso.codecs import BFloat16, Inferred, Occasional
from fedcso.core.errors import FedcsoError
from fedcso.core.plan import Plan
from fedcso.core.schedules import Cosine
from fedcso.core.task import Task
from fedcso.engines import compiled, run, run_grid
from fedcso.estimators import ESTIMATORS
from fedcso.problems import InvariantLogistic
from tests.helpers import CASES, FINITE, SADDLES, assert_same_run, classification

needs_compiler = pytest.mark.skipif(
    not shutil.which(os.environ.get("CXX", "g++")), reason="needs a C++ compiler to compile steps"
)
# The compiler imports parts of torch that others of its parts call old.
pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")

PROBLEM = InvariantLogistic(dimension=3, dtype=torch.float64)
TASK = Task(PROBLEM, PROBLEM.clients(2))
PLAN = Plan(rounds=3, local_steps=4, outer_batch=2, initial_batch=4, inner_batch=4)
SHORT = replace(PLAN, local_steps=1)


@pytest.fixture
def traced(monkeypatch):
    """Runs traced graphs as they are, on tensors for which they would have to be compiled once only."""

    def as_it_is(graph, like):
        seen = set()

        def call(*given):
            seen.add(tuple(one.stride() for one in given))
            assert len(seen) == 1
            return graph(*given)

        return call

    monkeypatch.setenv("CXX", "true")  # a command that is there
    monkeypatch.setattr(compiled, "compile_graph", as_it_is)


@needs_compiler
def test_compiled_by_torch_they_equal_the_reference():
    """With automatic differentiation through a network, for each client its own."""
    task = classification(sizes=(3, 7))
    found = run(AccFCSGM(0.1, 0.5), task, SHORT, engine="compiled")
    assert_same_run(found, run(AccFCSGM(0.1, 0.5), task, SHORT, engine="reference"))


@pytest.mark.usefixtures("traced")
@pytest.mark.parametrize("name", CASES | FINITE | SADDLES)
def test_every_problem_that_stacks_is_traced(name):
    task = (CASES | FINITE | SADDLES)[name]
    found = run(FCSGM(0.05, 0.3), task, SHORT, engine="compiled")
    assert_same_run(found, run(FCSGM(0.05, 0.3), task, SHORT, engine="reference"))


@pytest.mark.usefixtures("traced")
@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator_is_traced(name):
    expected, found = (
        run(FCSG(0.05), CASES["nested_quadratic"], SHORT, estimator=ESTIMATORS[name], engine=engine)
        for engine in ("reference", "compiled")
    )
    assert_same_run(found, expected)


@pytest.mark.usefixtures("traced")
def test_they_equal_stacked_ones_setting_by_setting():
    """Also of a method inside others, one of which changes how it moves."""
    settings = [FedProx(FedAdam(AccFCSGM(0.1, 0.5), 0.1), 0.5), FedProx(FedAdam(AccFCSGM(0.05, 0.1), 0.1), 0.1)]
    expected, found = (run_grid(settings, TASK, PLAN, [0, 1], engine=engine) for engine in ("stacked", "compiled"))
    for theirs, ours in zip(expected, found, strict=True):
        for a, b in zip(theirs, ours, strict=True):
            assert_same_run(b, a)


@pytest.mark.usefixtures("traced")
def test_steps_beside_the_first_and_the_output_step_are_not_compiled_and_are_the_same():
    """The first batch has the size of all others, so the first step is drawn together with others."""
    plan = Plan(rounds=3, local_steps=5, inner_batch=2)
    expected, found = (run(FCSGM(0.1, 0.5), TASK, plan, engine=engine) for engine in ("reference", "compiled"))
    assert_same_run(found, expected)


@pytest.mark.usefixtures("traced")
@pytest.mark.parametrize("operations", [1, 150])
def test_large_steps_are_compiled_a_few_at_a_time(monkeypatch, operations):
    monkeypatch.setattr(compiled, "OPERATIONS", operations)
    plan = Plan(rounds=3, local_steps=5, initial_batch=2)
    expected, found = (run(FCSGM(0.1, 0.5), TASK, plan, engine=engine) for engine in ("reference", "compiled"))
    assert_same_run(found, expected)


@pytest.mark.usefixtures("traced")
@pytest.mark.parametrize("codec", [BFloat16(), Occasional(2), Inferred()], ids=lambda one: type(one).__name__)
def test_messages_are_written_by_the_codec(codec):
    expected, found = (
        run(FCSGM(0.1, 0.5), TASK, PLAN, codec=codec, engine=engine) for engine in ("stacked", "compiled")
    )
    assert_same_run(found, expected)


@pytest.mark.usefixtures("traced")
def test_a_number_that_is_not_finite_is_named_as_ever():
    with pytest.raises(FedcsoError, match="non-finite loss at client 0"):
        run(FCSG(1e300), TASK, Plan(rounds=4, local_steps=2), engine="compiled")


@pytest.mark.parametrize("algorithm", [LocalSCGD(), FCSGM(Cosine(0.1, 100))], ids=["tracking", "schedule"])
def test_steps_that_are_not_all_alike_are_refused(algorithm):
    with pytest.raises(FedcsoError, match="not all alike"):
        run(algorithm, TASK, PLAN, engine="compiled")


def test_without_a_compiler_it_says_so(monkeypatch):
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(FedcsoError, match="no-such-compiler"):
        run(FCSG(), TASK, PLAN, engine="compiled")


def test_with_a_torch_that_is_too_old_it_says_so(monkeypatch):
    monkeypatch.setenv("CXX", "true")
    monkeypatch.delattr(torch._inductor, "standalone_compile")
    with pytest.raises(FedcsoError, match=r"torch .* is too old to compile steps \(2.8 can\); use --engine simulation"):
        run(FCSG(), TASK, PLAN, engine="compiled")


class LooksAtValues(InvariantLogistic):
    """A problem that says it takes many clients at once, and then branches on a number."""

    closed_form = None

    def outer(self, y, xi):
        losses = super().outer(y, xi)
        return losses if losses.sum() >= 0 else -losses


@pytest.mark.usefixtures("traced")
def test_a_problem_that_branches_on_numbers_is_refused_with_the_reason():
    problem = LooksAtValues(dimension=3)
    with pytest.raises(FedcsoError, match=r"can't run this: a step can't be traced: .*; use --engine simulation"):
        run(FCSG(0.1), Task(problem, TASK.clients), PLAN, engine="compiled")


def test_what_the_compiler_can_not_do_is_told(traced, monkeypatch):
    def break_down(graph, like):
        raise RuntimeError("no such instruction\nand a long story")

    monkeypatch.setattr(compiled, "compile_graph", break_down)
    with pytest.raises(FedcsoError, match=r"torch can't compile a step: no such instruction; use"):
        run(FCSG(0.1), TASK, PLAN, engine="compiled")
