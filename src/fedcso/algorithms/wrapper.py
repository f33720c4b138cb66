"""Wrappers: methods around any other method, their base, of which they change one part.

A wrapper calls its base for everything that it does not change, so `FedAdam(FCSGM())` sends what FCSG-M sends, and
`FedProx(FedAdam(FCSGM()))` changes the steps of the clients as well. `Wrapper` changes nothing, `Steering` the
direction in which clients move; `fedcso.algorithms.server_optimiser` changes how the server moves x.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from fedcso.algorithms.fcsg import FCSG
from fedcso.core.algorithm import Algorithm, Server, State
from fedcso.core.errors import require
from fedcso.core.oracle import Oracle
from fedcso.core.plan import Plan
from fedcso.core.problem import Batch, Problem
from fedcso.core.tree import Tree, Weight


@dataclass(frozen=True)
class Wrapper(Algorithm):
    """A method around another, which does everything that the wrapper does not replace."""

    base: Algorithm = field(default_factory=FCSG)
    """The method inside, which may be a wrapper itself."""

    def __post_init__(self) -> None:
        require("base", self.base, lambda base: isinstance(base, Algorithm), "a method, such as FCSG")

    @property
    def durable(self) -> bool:
        """That of the base."""
        return self.base.durable

    @property
    def stacks(self) -> bool:
        """That of the base."""
        return self.base.stacks

    @property
    def pooled(self) -> frozenset[str]:
        """That of the base."""
        return self.base.pooled

    @property
    def topology(self) -> str:
        """That of the base."""
        return self.base.topology

    @property
    def tracks(self) -> bool:
        """That of the base."""
        return self.base.tracks

    @property
    def steady(self) -> bool:
        """That of the base."""
        return self.base.steady

    def init(self, x: Tree) -> Server:
        """Return the base's state."""
        return self.base.init(x)

    def receive(self, shared: dict[str, Tree], local: dict[str, Tree] | None) -> State:
        """Receive as the base does."""
        return self.base.receive(shared, local)

    def step(self, state: State, oracle: Oracle, batch: Batch, t: int) -> State:
        """Take a step of the base."""
        return self.base.step(state, oracle, batch, t)

    def send(self, state: State, steps: range) -> State:
        """Send what the base sends."""
        return self.base.send(state, steps)

    def aggregate(self, server: Server, mean: dict[str, Tree], fraction: Weight) -> Server:
        """Aggregate as the base does."""
        return self.base.aggregate(server, mean, fraction)

    def outer_batch(self, t: int, plan: Plan) -> int:
        """Return the base's number of outer samples."""
        return self.base.outer_batch(t, plan)

    def remark(self, problem: Problem) -> str:
        """Return the base's remark."""
        return self.base.remark(problem)

    def check(self, plan: Plan, problem: Problem, clients: Sequence[Any]) -> None:
        """Raise if the base does not apply."""
        self.base.check(plan, problem, clients)


@dataclass(frozen=True)
class Steering(Wrapper, ABC):
    """A wrapper that changes the direction in which clients move, and no estimate of the base.

    What it needs for that is held in `local` from the start of a round to its end, beside the base's local state.
    """

    @abstractmethod
    def hold(self, shared: dict[str, Tree]) -> tuple[dict[str, Tree], dict[str, Tree]]:
        """Return the base's part of the server's message, and what is held for the round."""

    @abstractmethod
    def steer(self, held: dict[str, Tree], x: Tree, direction: Tree, t: int) -> Tree:
        """Return the direction to move along instead of the base's."""

    def receive(self, shared: dict[str, Tree], local: dict[str, Tree] | None) -> State:
        """Receive as the base does, and hold what the round needs."""
        own, held = self.hold(shared)
        state = self.base.receive(own, local)
        return State(state.shared, {"base": state.local, "held": held})

    def step(self, state: State, oracle: Oracle, batch: Batch, t: int) -> State:
        """Take a step of the base, which moves in another direction."""
        held = state.local["held"]
        steered = oracle.steered(lambda x, direction: self.steer(held, x, direction, t))
        after = self.base.step(State(state.shared, state.local["base"]), steered, batch, t)
        return State(after.shared, {"base": after.local, "held": held})

    def send(self, state: State, steps: range) -> State:
        """Send what the base sends, and keep nothing else."""
        return self.base.send(State(state.shared, state.local["base"]), steps)
