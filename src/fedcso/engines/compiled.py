"""Small models in long runs: the stacked engine with its steps compiled.

Several steps, automatic differentiation included, are traced once into a graph of plain tensor operations, which
torch's compiler makes machine code of. This takes from half a minute to a few minutes, and seconds if the result is
cached from an earlier run; afterwards a step of a small model costs little more than drawing its samples. It needs a
C++ compiler and a method whose steps are all alike (`Algorithm.steady` and constant settings), on any problem that can
be stacked. Results agree with `stacked` up to rounding.
"""

import os
import shutil
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from functools import partial
from math import ceil
from typing import Any, NamedTuple

import torch

from fedcso.core.algorithm import Algorithm, State, settings
from fedcso.core.errors import FedcsoError
from fedcso.core.problem import Batch, split_steps
from fedcso.core.tree import Tree, index, leaves, unflatten_like
from fedcso.datasets.fetch.places import cache_folder
from fedcso.engines import stacked
from fedcso.engines.engine import Engine
from fedcso.engines.job import Job
from fedcso.engines.recorder import Recorder
from fedcso.engines.stacked import Advance, Stacked

AT_ONCE = 64
"""The most steps per compiled call: more take longer to compile, fewer mean more calls."""

OPERATIONS = 2500
"""The most operations per compiled call, unless a single step has more: the time to compile grows with them."""


def why_not_compiled(algorithm: Algorithm) -> str:
    """Return why the method's steps can't be compiled here, or an empty string if they can."""
    compiler = os.environ.get("CXX", "g++")
    if not algorithm.steady or any(callable(value) for _, value in settings(algorithm)):
        return f"steps of {type(algorithm).__name__} with these settings are not all alike"
    if not hasattr(load_compiler(), "standalone_compile"):
        return f"torch {torch.__version__} is too old to compile steps (2.8 can)"
    if not shutil.which(compiler):
        return f"the C++ compiler {compiler!r} was not found (set CXX to another)"
    return ""


def load_compiler() -> Any:
    """Return torch's compiler, which chooses the folder of its cache as soon as it is imported."""
    os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(cache_folder() / "compiled"))
    import torch._inductor

    return torch._inductor


def compile_graph(graph: torch.fx.GraphModule, like: list[torch.Tensor]) -> Callable[..., Any]:
    """Return a graph as machine code for tensors like the given ones; the code is cached on disk.

    `torch.compile` does the same, but checks at every call that the code still fits, which can take as long as a call.
    """
    for node in graph.graph.nodes:
        node.meta.clear()  # the tensors of the tracing, which inductor would take for its own
    code: Callable[..., Any] = load_compiler().standalone_compile(
        graph,
        like,
        dynamic_shapes="from_example_inputs",
        # Python would take as long to allocate what a call needs as the call takes.
        options={"config_patches": {"cpp_wrapper": True}},
    )
    return code


class Taken(NamedTuple):
    """What several steps leave: the new state, their losses and probes, each with the steps in front."""

    shared: dict[str, Tree]
    local: dict[str, Tree]
    losses: torch.Tensor
    probes: torch.Tensor


Shapes = tuple[torch.Size, ...]
"""The shapes of all that steps start from."""


class Steps:
    """Several steps on samples of certain shapes, none of which is step 0: traced, and compiled when called."""

    def __init__(self, run: Callable[..., tuple[Taken, int]], state: State, batch: Batch):
        from torch.fx.experimental.proxy_tensor import make_fx  # imported late: slow to load

        like = (state.shared, state.local, batch)

        def on_tensors(*tensors: torch.Tensor) -> list[torch.Tensor]:
            self.like, self.gradients = run(*unflatten_like(like, tensors))
            return leaves(self.like)

        self.graph = make_fx(on_tensors)(*_tensors(state, batch))
        self.operations: int = sum(node.op == "call_function" for node in self.graph.graph.nodes)
        self.code: Callable[..., Any] | None = None

    def __call__(self, state: State, batch: Batch) -> Taken:
        """Run the steps."""
        tensors = _tensors(state, batch)
        if self.code is None:
            self.code = compile_graph(self.graph, tensors)
        taken: Taken = unflatten_like(self.like, self.code(*tensors))
        return taken


class Compiled(Stacked):
    """Rounds with many steps per compiled call, except for portions that contain step 0 or an output step."""

    def __init__(self, algorithms: Sequence[Algorithm], job: Job, seeds: Sequence[int]):
        super().__init__(algorithms, job, seeds)
        if reason := why_not_compiled(self.algorithm):
            raise _refusal(reason)
        self.known: dict[Shapes, Steps] = {}
        self.known_calls: dict[Shapes, list[tuple[slice, Steps]]] = {}

    def parts(self, steps: range, batch: Batch) -> list[tuple[range, Advance]]:
        """Run all steps in compiled calls, or one by one if they contain step 0 or an output step."""
        if any(t in steps for t in (0, *self.output_steps)):
            return super().parts(steps, batch)
        return [(steps, partial(self.take_steps, batch, len(steps)))]

    def take_steps(self, batch: Batch, number: int, state: State, answers: Recorder) -> State:
        """Run steps in compiled calls of nearly equal size."""
        for which, steps in self.calls(number, state, batch):
            some = index(batch, which)
            try:
                taken = steps(state, some)
            except RuntimeError as error:
                raise _refusal(f"torch can't compile a step: {_first_line(error)}") from error
            state = State(taken.shared, taken.local)
            answers.oracle.count(steps.gradients)
            answers.keep_steps(taken.losses, taken.probes)
        return state

    def calls(self, number: int, state: State, batch: Batch) -> list[tuple[slice, Steps]]:
        """Return the calls for samples of these shapes: which of the steps each of them takes, and its code."""
        key = _shapes(state, batch)
        if key not in self.known_calls:
            one = self.steps(state, index(batch, slice(0, 1)))
            calls = ceil(number / max(1, min(AT_ONCE, OPERATIONS // one.operations)))
            size = ceil(number / calls)
            parts = [slice(first, first + size) for first in range(0, number, size)]
            self.known_calls[key] = [(part, self.steps(state, index(batch, part))) for part in parts]
        return self.known_calls[key]

    def steps(self, state: State, batch: Batch) -> Steps:
        """Return the steps for samples of these shapes, traced when they are needed for the first time."""
        key = _shapes(state, batch)
        if key not in self.known:
            try:
                self.known[key] = Steps(self.run_steps, state, batch)
            except RuntimeError as error:
                raise _refusal(f"a step can't be traced: {_first_line(error)}") from error
        return self.known[key]

    def run_steps(self, shared: dict[str, Tree], local: dict[str, Tree], batch: Batch) -> tuple[Taken, int]:
        """Run several steps, and return what they leave and how many gradients they take; this is what is compiled."""
        answers, state = Recorder(self.job, self.shape[0]), State(shared, local)
        for one in split_steps(batch, len(leaves(batch.xi)[0])):
            state = self.algorithm.step(state, answers.oracle, one, t=1)
        return Taken(state.shared, state.local, *answers.found()), answers.oracle.costs.gradients


def _shapes(state: State, batch: Batch) -> Shapes:
    return tuple(leaf.shape for leaf in leaves((state.shared, state.local, batch)))


def _tensors(state: State, batch: Batch) -> list[torch.Tensor]:
    """Return all that steps start from, laid out in memory as the code expects it."""
    return [leaf.contiguous() for leaf in leaves((state.shared, state.local, batch))]


def _refusal(reason: str) -> FedcsoError:
    return FedcsoError(f"the engine compiled can't run this: {reason}; use --engine simulation")


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]


ENGINE = Engine(contextmanager(partial(stacked.start, kind=Compiled)), runs_grids=lambda job: True)
