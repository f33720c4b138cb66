"""Small models in long runs: the stacked engine with its steps compiled by `torch.compile`.

Compiling takes about half a minute, less if the result is cached from an earlier run; afterwards a step costs little
more than drawing its samples. It needs a C++ compiler, a method whose steps are all alike (`Algorithm.steady` and
constant settings) and a problem with a formula for its gradient (`Problem.closed_form`). Results agree with `stacked`
up to rounding.
"""

import os
import shutil
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from functools import partial
from math import ceil
from typing import Any

import torch

from fedcso.core.algorithm import Algorithm, State, settings
from fedcso.core.errors import FedcsoError
from fedcso.core.problem import Batch, split_steps
from fedcso.core.tree import Tree, index, leaves
from fedcso.engines import stacked
from fedcso.engines.engine import Engine
from fedcso.engines.job import Job
from fedcso.engines.stacked import Advance, Recorder, Stacked

AT_ONCE = 32
"""Steps per compiled call: more take longer to compile, fewer mean more calls."""


def why_not_compiled(algorithm: Algorithm, job: Job) -> str:
    """Return why the steps can't be compiled, or an empty string if they can."""
    compiler = os.environ.get("CXX", "g++")
    if not algorithm.steady or any(callable(value) for _, value in settings(algorithm)):
        return f"steps of {type(algorithm).__name__} with these settings are not all alike"
    if job.problem.closed_form is None or not job.estimator.is_plain:
        return f"{type(job.problem).__name__} has no formula for the gradient of this estimator"
    if not shutil.which(compiler):
        return f"the C++ compiler {compiler!r} was not found (set CXX to another)"
    return ""


class Compiled(Stacked):
    """Rounds with many steps per compiled call, except for step 0 and for portions that contain an output step."""

    def __init__(self, algorithms: Sequence[Algorithm], job: Job, seeds: Sequence[int]):
        super().__init__(algorithms, job, seeds)
        if reason := why_not_compiled(self.algorithm, job):
            raise FedcsoError(f"the engine compiled can't run this: {reason}; use --engine simulation")
        torch.compiler.reset()  # earlier runs' code is useless here and counts towards torch's limit
        self.several: Callable[..., Any] = torch.compile(self.run_steps, fullgraph=True, dynamic=False)

    def parts(self, steps: range, batch: Batch) -> list[tuple[range, Advance]]:
        """Split the steps into parts of nearly equal size, each of which is one compiled call."""
        if any(t in steps for t in (0, *self.output_steps)):
            return super().parts(steps, batch)
        size = ceil(len(steps) / ceil(len(steps) / AT_ONCE))
        starts = range(0, len(steps), size)
        return [
            (steps[first : first + size], partial(self.take_steps, index(batch, slice(first, first + size))))
            for first in starts
        ]

    def take_steps(self, batch: Batch, state: State, answers: Recorder) -> State:
        """Run several steps as one compiled call."""
        shared, local, losses, probes, gradients = self.several(state.shared, state.local, batch)
        answers.oracle.count(gradients)
        answers.losses.extend(losses)
        if answers.probes is not answers.losses:
            answers.probes.extend(probes)
        return State(shared, local)

    def run_steps(
        self, shared: dict[str, Tree], local: dict[str, Tree], batch: Batch
    ) -> tuple[dict[str, Tree], dict[str, Tree], list[torch.Tensor], list[torch.Tensor], int]:
        """Run several steps, none of which is step 0; this function is what is compiled."""
        answers, state = Recorder(self.job, self.shape[0]), State(shared, local)
        for one in split_steps(batch, len(leaves(batch.xi)[0])):
            state = self.algorithm.step(state, answers.oracle, one, t=1)
        return state.shared, state.local, answers.losses, answers.probes, answers.oracle.costs.gradients


ENGINE = Engine(contextmanager(partial(stacked.start, kind=Compiled)), runs_grids=lambda job: True)
