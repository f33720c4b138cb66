"""What an algorithm is: local steps between messages, and nothing about how messages travel."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import Any, ClassVar, NamedTuple

import torch

from fedcso.core.errors import InvalidValue
from fedcso.core.oracle import Oracle
from fedcso.core.plan import Plan
from fedcso.core.problem import Batch, Problem
from fedcso.core.tree import Tree, Weight

Schedule = float | torch.Tensor | Callable[[int], float]
"""A number, one number per grid point, or a function of the step t = 0, 1, 2, …"""


class State(NamedTuple):
    """What a client holds: `shared` is combined over clients and travels, `local` never leaves it.

    That is all a network must know: messages, averaging and communication costs follow from it.
    """

    shared: dict[str, Tree]
    local: dict[str, Tree] = {}  # noqa: RUF012 - a NamedTuple's default, never changed in place


class Server(NamedTuple):
    """What the server holds: `shared` travels to the clients, `kept` never leaves it (moments of an optimiser, say)."""

    shared: dict[str, Tree]
    kept: dict[str, Tree] = {}  # noqa: RUF012 - a NamedTuple's default, never changed in place


class Algorithm(ABC):
    """A federated method: a frozen dataclass of hyper-parameters with the five moments of a round.

        server    server = init(x_0)
        client    state  = receive(server.shared, local)  a message comes in
        client    state  = step(state, oracle, batch, t)  q times: estimate, then move
        client    state  = send(state, steps)             state.shared goes out
        server    server = aggregate(server, mean, fraction)

    Only `step` has to be written; `init` too where more than x is shared. Code is elementwise
    arithmetic on pytrees (`fedcso.core.tree`) plus questions to the oracle, so that the same lines serve one
    client, or a whole grid of settings times clients whose leaves are stacked along leading axes.
    The step t counts from 0 over the whole run; the batch at t = 0 is the initial one of size B.
    How `shared` becomes a message and back is not the method's business: see `fedcso.core.codec`.
    """

    durable: ClassVar[bool] = True
    """False if `local` loses its meaning for a client that missed a round (such as the previous iterate);
    it is then forgotten, and `receive` starts anew."""

    stacks: ClassVar[bool] = True
    """False if clients' states differ in shape or are too large, so that they can't be stacked along leading axes."""

    tracks: ClassVar[bool] = False
    """True if the inner value ĝ is tracked over steps instead of being estimated anew: no estimator is used then."""

    steady: ClassVar[bool] = False
    """True if a step with constant settings depends on t only by whether t = 0: then steps can be compiled once."""

    def init(self, x: Tree) -> Server:
        """Return what the server starts with; x may be any pytree."""
        return Server({"x": x})

    def receive(self, shared: dict[str, Tree], local: dict[str, Tree] | None) -> State:
        """A client takes up the server's message; `local` is None if it has none yet or any more."""
        return State(shared, local or {})

    @abstractmethod
    def step(self, state: State, oracle: Oracle, batch: Batch, t: int) -> State:
        """One local step on samples drawn for it."""

    def send(self, state: State, steps: range) -> State:
        """What is done after the round's last step (its steps are given), before `shared` travels."""
        return state

    def aggregate(self, server: Server, mean: dict[str, Tree], fraction: Weight) -> Server:
        """Return the server's next state, from its last and the mean of what a fraction of the clients sent."""
        return Server(mean, server.kept)

    def outer_batch(self, t: int, plan: Plan) -> int:
        """How many outer samples step t needs: B at the start, b later."""
        return plan.initial if t == 0 else plan.outer_batch

    def check(self, plan: Plan, problem: Problem, clients: Sequence[Any]) -> None:  # noqa: B027 - most take any
        """Refuse plans, problems and data that the method is not made for."""


def at(schedule: Schedule, t: int) -> float | torch.Tensor:
    """The value of a hyper-parameter at step t."""
    return schedule(t) if callable(schedule) else schedule


def grid(algorithms: Sequence[Algorithm]) -> Algorithm:
    """Several settings of ONE method as a single one, whose numbers are tensors with an entry for each."""
    first = algorithms[0]
    if len(algorithms) == 1:
        return first
    if any(type(a) is not type(first) for a in algorithms):
        kinds = sorted({type(a).__name__ for a in algorithms})
        raise InvalidValue("algorithms", kinds, "settings of one and the same method to be run as one grid")
    stacked: dict[str, Any] = {}
    for field in fields(first):  # type: ignore[arg-type]  # algorithms are dataclasses
        values = [getattr(a, field.name) for a in algorithms]
        if all(value == values[0] for value in values):
            continue
        if field.type is int or any(isinstance(value, torch.Tensor) for value in values):
            raise InvalidValue(field.name, values, "the same in all settings of a grid (only reals may vary)")
        if any(callable(value) for value in values):
            stacked[field.name] = lambda t, values=values: _as_grid([at(value, t) for value in values])
        else:
            stacked[field.name] = _as_grid(values)
    return replace(first, **stacked) if stacked else first  # type: ignore[type-var]


def _as_grid(values: Sequence[Any]) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)
