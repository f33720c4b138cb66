"""Small models in long runs: the stacked engine with its steps compiled by `torch.compile`.

Compiling takes half a minute for each number of steps that are taken in one go, less when it has been done before
on this machine; then a step costs little more than drawing its samples. Needs a C++ compiler, a method whose steps are
all alike (`Algorithm.steady`, constant settings) and a problem with a formula for its gradient (`Problem.closed_form`).
Results equal those of `stacked` but for rounding.
"""

import os
import shutil
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from dataclasses import fields
from functools import partial
from math import ceil
from typing import Any

import torch

from fedcso.core.algorithm import Algorithm, State
from fedcso.core.errors import FedcsoError
from fedcso.core.problem import Batch, steps_of
from fedcso.core.tree import Tree, index
from fedcso.engines import stacked
from fedcso.engines.engine import Engine
from fedcso.engines.job import Job
from fedcso.engines.stacked import Answers, Stacked

AT_ONCE = 32
"""Steps that are compiled into one: more take longer to compile, fewer are called more often."""


def obstacle(algorithm: Algorithm, job: Job) -> str:
    """Why steps can't be compiled; empty if they can."""
    compiler = os.environ.get("CXX", "g++")
    if not algorithm.steady or any(callable(getattr(algorithm, field.name)) for field in fields(algorithm)):  # type: ignore[arg-type]
        return f"steps of {type(algorithm).__name__} with these settings are not all alike"
    if job.problem.closed_form is None or not job.estimator.is_plain:
        return f"{type(job.problem).__name__} has no formula for the gradient of this estimator"
    if job.plan.adaptive:
        return "m is to change on the way"
    if not shutil.which(compiler):
        return f"there is no C++ compiler {compiler!r} here (set CXX to one)"
    return ""


class Compiled(Stacked):
    """Rounds whose steps are taken many at a time, but for the first of all and for those after which x is kept."""

    def __init__(self, algorithms: Sequence[Algorithm], job: Job, seeds: Sequence[int]):
        super().__init__(algorithms, job, seeds)
        if reason := obstacle(self.algorithm, job):
            raise FedcsoError(f"the engine compiled can't be used: {reason}; use the engine simulation")
        torch.compiler.reset()  # what was compiled for earlier runs is of no use, and there is a limit to it
        self.several: Callable[..., Any] = torch.compile(self.take_several, fullgraph=True, dynamic=False)

    def parts(self, steps: range, batch: Batch) -> list[tuple[range, Batch]]:
        """Nearly equal parts of several steps."""
        if any(t in steps for t in (0, *self.output_steps)):
            return super().parts(steps, batch)
        size = ceil(len(steps) / ceil(len(steps) / AT_ONCE))
        starts = range(0, len(steps), size)
        return [(steps[first : first + size], index(batch, slice(first, first + size))) for first in starts]

    def advance(self, state: State, answers: Answers, batch: Batch, steps: range) -> State:
        """Take a part compiled, and keep what was answered on the way."""
        if any(t in steps for t in (0, *self.output_steps)):
            return super().advance(state, answers, batch, steps)
        shared, local, losses, probes, gradients = self.several(state.shared, state.local, batch, len(steps))
        answers.oracle.count(gradients)
        answers.losses.extend(losses)
        if answers.probes is not answers.losses:
            answers.probes.extend(probes)
        return State(shared, local)

    def take_several(
        self, shared: dict[str, Tree], local: dict[str, Tree], batch: Batch, count: int
    ) -> tuple[dict[str, Tree], dict[str, Tree], list[torch.Tensor], list[torch.Tensor], int]:
        """What is compiled: so many steps, none of which is the first."""
        answers, state = Answers(self.job, self.shape[0]), State(shared, local)
        for one in steps_of(batch, count):
            state = self.algorithm.step(state, answers.oracle, one, t=1)
        return state.shared, state.local, answers.losses, answers.probes, answers.oracle.costs.gradients


ENGINE = Engine(contextmanager(partial(stacked.start, kind=Compiled)), stacked.can_play_together)
