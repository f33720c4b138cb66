"""The interface of a federated method: what clients and server compute between messages, not how messages travel."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import fields, replace
from typing import Any, ClassVar, NamedTuple, Protocol, runtime_checkable

import torch

from fedcso.core.errors import InvalidValue
from fedcso.core.oracle import Oracle
from fedcso.core.plan import Plan
from fedcso.core.problem import Batch, Problem
from fedcso.core.topology import SERVER
from fedcso.core.tree import Tree, Weight

Schedule = float | torch.Tensor | Callable[[int], float]
"""A number, a tensor with one number for each grid point, or a function of the step t = 0, 1, 2, … (of the round, for
hyper-parameters of the server)"""


class State(NamedTuple):
    """A client's state: `shared` is sent and averaged (or pooled) over clients, `local` never leaves the client.

    Messages, averages and communication costs all follow from this distinction.
    """

    shared: dict[str, Tree]
    local: dict[str, Tree] = {}  # noqa: RUF012 - a NamedTuple's default, never changed in place


class Server(NamedTuple):
    """The server's state: `shared` is sent to the clients, `kept` never leaves the server (moments of an optimiser)."""

    shared: dict[str, Tree]
    kept: dict[str, Tree] = {}  # noqa: RUF012 - a NamedTuple's default, never changed in place


class Algorithm(ABC):
    """A federated method: a frozen dataclass of hyper-parameters whose methods are the five stages of a round.

        server    server = init(x_0)                            once
        client    state  = receive(server.shared, local)        take up the server's message
        client    state  = step(state, oracle, batch, t)        q times: estimate, then move
        client    state  = send(state, steps)                   state.shared is sent
        server    server = aggregate(server, mean, fraction)

    Only `step` is required; override `init` too if more than x is shared. Write them as elementwise arithmetic on
    pytrees (`fedcso.core.tree`) and calls of the oracle: the same code then runs for one client, and for a whole grid
    of settings and clients whose leaves are stacked along leading axes. The step t counts from 0 over the whole run;
    the batch at t = 0 is the initial one of size B. How `shared` is written into messages is up to the codec
    (`fedcso.core.codec`).
    """

    use_when: ClassVar[str] = ""
    """When to use the method, in a few words, for `fedcso list`."""
    by_round: ClassVar[frozenset[str]] = frozenset()
    """The hyper-parameters of the server, whose schedules count rounds instead of steps."""

    @property
    def durable(self) -> bool:
        """False if `local` is useless to a client that missed a round (the previous iterate, for example); it is then
        discarded, and `receive` gets None. Most methods declare it, and the five below, as class variables."""
        return True

    @property
    def stacks(self) -> bool:
        """False if clients' states can't be stacked along leading axes: their shapes differ, or they are too large."""
        return True

    @property
    def pooled(self) -> frozenset[str]:
        """The keys of `shared` that are concatenated over clients instead of averaged. A client sends entries along the
        first axis and receives those of all clients, with weights (`fedcso.core.codec.concatenate`); () at first."""
        return frozenset()

    @property
    def topology(self) -> str:
        """The network over which clients average, unless the plan names another (`fedcso.core.topology`)."""
        return SERVER

    @property
    def tracks(self) -> bool:
        """True if the inner value ĝ is tracked over steps instead of estimated in each; no estimator is used then."""
        return False

    @property
    def steady(self) -> bool:
        """True if, with constant hyper-parameters, all steps t > 0 are the same computation, to be compiled once."""
        return False

    def init(self, x: Tree) -> Server:
        """Return the server's initial state; x may be any pytree."""
        return Server({"x": x})

    def receive(self, shared: dict[str, Tree], local: dict[str, Tree] | None) -> State:
        """Return a client's state at the start of a round; `local` is None if it has none that is still valid."""
        return State(shared, local or {})

    @abstractmethod
    def step(self, state: State, oracle: Oracle, batch: Batch, t: int) -> State:
        """Return the state after one local step on the samples drawn for it."""

    def send(self, state: State, steps: range) -> State:
        """Return the state to send after the last of the round's steps.

        Also called right after `receive`, without steps in between, to find out what a message looks like.
        """
        return state

    def aggregate(self, server: Server, mean: dict[str, Tree], fraction: Weight) -> Server:
        """Return the server's next state, given the mean (and the pools) of the fraction of clients that took part."""
        return Server(mean, server.kept)

    def outer_batch(self, t: int, plan: Plan) -> int:
        """Return the number of outer samples of step t: B at t = 0, then b."""
        return plan.initial if t == 0 else plan.outer_batch

    def remark(self, problem: Problem) -> str:
        """Return what users should know of the method on this problem, or an empty string."""
        return ""

    def check(self, plan: Plan, problem: Problem, clients: Sequence[Any]) -> None:  # noqa: B027 - optional
        """Raise `FedcsoError` if the method does not apply to this plan, problem or data."""


@runtime_checkable
class OfUnknownLength(Protocol):
    """A schedule that depends on the length of the run."""

    def over(self, length: int) -> Callable[[int], float]:
        """Return the schedule of a run of this length: T steps, or the rounds if the schedule counts those."""


def settings(algorithm: Algorithm) -> Iterator[tuple[str, Any]]:
    """Return the names and values of all hyper-parameters, also of a method that is one of them (a wrapper's base)."""
    for name, value in vars(algorithm).items():
        if isinstance(value, Algorithm):
            yield from settings(value)
        else:
            yield name, value


def bind_schedules(algorithm: Algorithm, plan: Plan) -> Algorithm:
    """Return the method with schedules that know the length of the run."""

    def bound(name: str, value: Any) -> Any:
        if isinstance(value, Algorithm):
            return bind_schedules(value, plan)
        length = plan.rounds if name in algorithm.by_round else plan.total_steps
        return value.over(length) if isinstance(value, OfUnknownLength) else value

    changed = {name: new for name, value in vars(algorithm).items() if (new := bound(name, value)) is not value}
    if not changed:
        return algorithm
    result = copy(algorithm)
    vars(result).update(changed)
    return result


def at(schedule: Schedule, t: int) -> float | torch.Tensor:
    """Return the value of a hyper-parameter at step t."""
    return schedule(t) if callable(schedule) else schedule


def grid(algorithms: Sequence[Algorithm]) -> Algorithm:
    """Combine several settings of ONE method into one whose numbers are tensors with an entry for each setting."""
    first = algorithms[0]
    if len(algorithms) == 1:
        return first
    if any(type(a) is not type(first) for a in algorithms):
        kinds = sorted({type(a).__name__ for a in algorithms})
        raise InvalidValue("algorithms", kinds, "settings of the same method, to be run as one grid")
    stacked: dict[str, Any] = {}
    for field in fields(first):  # type: ignore[arg-type]  # algorithms are dataclasses
        values = [getattr(a, field.name) for a in algorithms]
        if all(value == values[0] for value in values):
            continue
        if all(isinstance(value, Algorithm) for value in values):
            stacked[field.name] = grid(values)
        elif field.type is int or any(isinstance(value, torch.Tensor | str) for value in values):
            raise InvalidValue(field.name, values, "the same in all settings of a grid: only real numbers can vary")
        elif any(callable(value) for value in values):
            stacked[field.name] = lambda t, values=values: _as_grid([at(value, t) for value in values])
        else:
            stacked[field.name] = _as_grid(values)
    return replace(first, **stacked) if stacked else first  # type: ignore[type-var]


def _as_grid(values: Sequence[Any]) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)
