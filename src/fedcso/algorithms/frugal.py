"""Sending less: the momentum methods send x and u, twice what FCSG sends, and u need not travel as it is.

    full        x and u, as in the paper
    bfloat16    u in two bytes a number, int8 in one; what rounding took away is added before the next (error feedback)
    int8
    every(k)    u is averaged in every k-th round only; in between each client goes on with its own
    inferred    u is not sent at all. All know (x̄_start − x̄_end) / Σα over the round: the round's average of ū,
                exactly ū for q = 1, a smoothed one for q > 1 (where nothing is projected)

Each is a method made of a method: what is shared changes, the steps are those of the base. `uplink` and `downlink` are
what really travels, and what is counted.
"""

import re
from abc import ABC
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from fedcso.algorithms.acc_fcsg_m import AccFCSGM
from fedcso.algorithms.fcsg_m import FCSGM
from fedcso.core.algorithm import Algorithm, Schedule, State, at
from fedcso.core.errors import InvalidValue, require_count
from fedcso.core.oracle import Oracle
from fedcso.core.plan import Plan
from fedcso.core.problem import Batch, Problem
from fedcso.core.tree import Tree, Weight, add_scaled, map_leaves, subtract, zeros_like

FULL = "full"
ALLOWED = "full, bfloat16, int8, inferred, or every(k) with a whole number k"


@dataclass(frozen=True)
class Frugal(Algorithm, ABC):
    """A method that shares x and u, of which u is sent otherwise."""

    base: Algorithm

    def __post_init__(self) -> None:
        # What is a constant of other methods is here that of the base.
        object.__setattr__(self, "durable", self.base.durable)
        object.__setattr__(self, "stacks", self.base.stacks)

    def init(self, x: Tree) -> dict[str, Tree]:
        """As the base."""
        return self.base.init(x)

    def receive(self, shared: dict[str, Tree], local: dict[str, Tree] | None) -> State:
        """As the base, which sees x and u only and keeps its own things by themselves."""
        received = self.base.receive({"x": shared["x"], "u": shared["u"]}, local["base"] if local else None)
        return State(received.shared, {"base": received.local})

    def step(self, state: State, oracle: Oracle, batch: Batch, t: int) -> State:
        """As the base."""
        stepped = self.base.step(State(state.shared, state.local["base"]), oracle, batch, t)
        return State(stepped.shared, state.local | {"base": stepped.local})

    def outer_batch(self, t: int, plan: Plan) -> int:
        """As the base."""
        return self.base.outer_batch(t, plan)

    def check(self, plan: Plan, problem: Problem, clients: Sequence[Any]) -> None:
        """As the base."""
        self.base.check(plan, problem, clients)


@dataclass(frozen=True)
class Rounded(Frugal):
    """u in fewer bits, upwards and downwards, with error feedback at both ends."""

    bits: int = 16
    """16 for bfloat16, 8 for whole numbers times a scale for each leaf."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.bits == 8:  # a scale belongs to one client
            object.__setattr__(self, "stacks", False)

    def init(self, x: Tree) -> dict[str, Tree]:
        """The server has an error of its own, which stays with it."""
        return self.base.init(x) | {"error": zeros_like(x)}

    def receive(self, shared: dict[str, Tree], local: dict[str, Tree] | None) -> State:
        """A client's error is 0 at first."""
        state = super().receive(shared, local)
        return State(state.shared, state.local | {"error": local["error"] if local else zeros_like(shared["u"])})

    def send(self, state: State, steps: range) -> State:
        """u with what was lost before, rounded; what is lost now is kept."""
        u, error = self.rounded(state.shared["u"], state.local["error"])
        return State(state.shared | {"u": u}, state.local | {"error": error})

    def aggregate(self, before: dict[str, Tree], mean: dict[str, Tree], fraction: Weight) -> dict[str, Tree]:
        """The same on the server's side."""
        u, error = self.rounded(mean["u"], before["error"])
        return {"x": mean["x"], "u": u, "error": error}

    def rounded(self, u: Tree, error: Tree) -> tuple[Tree, Tree]:
        """u + error as it comes out of a message, and what the message lacks."""
        whole = add_scaled(u, error, 1.0)
        sent = map_leaves(lambda leaf: _from_message(_to_message(leaf, self.bits), leaf), whole)
        return sent, subtract(whole, sent)

    def uplink(self, shared: dict[str, Tree]) -> Tree:
        """x as it is, u in few bits."""
        return {"x": shared["x"], "u": map_leaves(lambda leaf: _to_message(leaf, self.bits), shared["u"])}

    def downlink(self, shared: dict[str, Tree], informed: bool, steps: range) -> Tree:
        """The same."""
        return self.uplink(shared)


@dataclass(frozen=True)
class Occasional(Frugal):
    """u is sent, averaged and sent back in every k-th round; in between it stays at home."""

    every: int = 2
    """k."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require_count("send_u", self.every)
        object.__setattr__(self, "durable", False)  # who missed a round takes the server's u instead of an old own one

    def receive(self, shared: dict[str, Tree], local: dict[str, Tree] | None) -> State:
        """A client goes on with its own u, if it has one."""
        return super().receive(shared | {"u": local["u"]} if local and "u" in local else shared, local)

    def send(self, state: State, steps: range) -> State:
        """x, and u if it is its turn."""
        turn = steps[0] // len(steps) + 1
        if turn % self.every == 0:
            return state
        return State({"x": state.shared["x"]}, state.local | {"u": state.shared["u"]})

    def aggregate(self, before: dict[str, Tree], mean: dict[str, Tree], fraction: Weight) -> dict[str, Tree]:
        """The server remembers the last average, for clients that have no u."""
        return {"x": mean["x"], "u": mean.get("u", before["u"])}

    def downlink(self, shared: dict[str, Tree], informed: bool, steps: range) -> Tree:
        """u is needed when it is new, and by clients that have none of their own."""
        new = (steps[0] // len(steps)) % self.every == 0
        return {"x": shared["x"], "u": shared["u"]} if new or not informed else {"x": shared["x"]}


@dataclass(frozen=True)
class Inferred(Frugal):
    """u is what x did in the last round: nobody sends it who has seen that round."""

    def receive(self, shared: dict[str, Tree], local: dict[str, Tree] | None) -> State:
        """x_start is remembered for the round's end."""
        state = super().receive(shared, local)
        return State(state.shared, state.local | {"start": shared["x"]})

    def send(self, state: State, steps: range) -> State:
        """(x_start − x_end) / Σα, whose mean over clients the server computes from x̄_start and x̄_end alone."""
        rate: Schedule = self.base.learning_rate  # type: ignore[attr-defined]  # all of _MOMENTUM have one
        travelled = sum(at(rate, t) for t in steps)
        moved = subtract(state.local["start"], state.shared["x"])
        u = add_scaled(zeros_like(moved), moved, 1 / travelled)
        return State({"x": state.shared["x"], "u": u}, {"base": state.local["base"]})

    def uplink(self, shared: dict[str, Tree]) -> Tree:
        """x alone."""
        return {"x": shared["x"]}

    def downlink(self, shared: dict[str, Tree], informed: bool, steps: range) -> Tree:
        """Who was there in the last round knows x̄_start; the others need u."""
        return {"x": shared["x"]} if informed else {"x": shared["x"], "u": shared["u"]}


def sending(how: str, base: Algorithm) -> Algorithm:
    """A method with u sent in the way that is asked for."""
    if how == FULL:
        return base
    every = re.fullmatch(r"every\((\d+)\)", how.replace(" ", ""))
    if every:
        return Occasional(base, int(every[1]))
    if how == "inferred":
        return Inferred(base)
    if how not in _BITS:
        raise InvalidValue("send_u", how, ALLOWED)
    return Rounded(base, _BITS[how])


def spelled(algorithm: Frugal) -> str:
    """How it was asked for."""
    if isinstance(algorithm, Occasional):
        return f"every({algorithm.every})"
    if isinstance(algorithm, Rounded):
        return next(name for name, bits in _BITS.items() if bits == algorithm.bits)
    return "inferred"


def shares_u(kind: type[Algorithm]) -> bool:
    """True for methods that share x and u and nothing else, and move by x ← x − αu from there."""
    return kind in _MOMENTUM


def _to_message(leaf: torch.Tensor, bits: int) -> Tree:
    """A leaf of u as it travels."""
    if bits == 16:
        return {"values": leaf.to(torch.bfloat16)}
    scale = (leaf.abs().max() / 127).clamp_min(torch.finfo(torch.float32).tiny).to(torch.float32)
    return {"values": torch.round(leaf / scale).clamp(-127, 127).to(torch.int8), "scale": scale}


def _from_message(message: Tree, like: torch.Tensor) -> torch.Tensor:
    values: torch.Tensor = message["values"].to(like.dtype)
    return values * message["scale"].to(like.dtype) if "scale" in message else values


_BITS = {"bfloat16": 16, "int8": 8}
_MOMENTUM = (FCSGM, AccFCSGM)
