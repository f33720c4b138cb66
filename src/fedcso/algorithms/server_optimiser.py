"""Optimisers at the server: wrappers that replace x ← x̄, the base's average, by a step from x towards it.

    Δ = x̄ − x,      x ← x + η_s d,      where d is made of Δ and of moments of earlier Δ

x is what the server sent, x̄ what the base would send next; η_s may follow a schedule, of the round. Everything else
that a base shares (u, c, y) is averaged as the base says. Clients do what they do without the wrapper; the moments are
kept at the server. A server has no access to the problem, so x may leave X until the clients' next step projects it;
`remark` says so.

References: Hsu, Qi, Brown, Measuring the Effects of Non-Identical Data Distribution for Federated Visual
Classification, 2019; Reddi et al., Adaptive Federated Optimization, ICLR 2021.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from fedcso.algorithms.wrapper import Wrapper
from fedcso.core.algorithm import Algorithm, Schedule, Server, at
from fedcso.core.errors import InvalidValue, is_number, require, require_positive
from fedcso.core.problem import Problem
from fedcso.core.tree import Tree, Weight, add_scaled, align, map_leaves, mix, subtract, zeros_like

Moments = dict[str, Tree]


@dataclass(frozen=True)
class ServerOptimiser(Wrapper, ABC):
    """A wrapper that moves x at the server by η_s times a direction made of Δ; server_rate is η_s."""

    server_rate: Schedule = 1.0
    by_round: ClassVar[frozenset[str]] = frozenset({"server_rate"})

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive("server_rate", self.server_rate)

    @abstractmethod
    def start(self, x: Tree) -> Moments:
        """Return the moments before the first round."""

    @abstractmethod
    def direction(self, moments: Moments, change: Tree) -> tuple[Tree, Moments]:
        """Return d and the new moments, given Δ."""

    def init(self, x: Tree) -> Server:
        """Return the base's state, with moments."""
        shared, kept = self.base.init(x)
        count = {"moves": torch.zeros(())} if callable(self.server_rate) else {}  # a constant needs no count
        return Server(shared, {"base": kept, "moments": self.start(x), **count})

    def aggregate(self, server: Server, mean: dict[str, Tree], fraction: Weight) -> Server:
        """Aggregate as the base does, then step from the old x."""
        x, own = server.shared["x"], {name: value for name, value in server.kept.items() if name != "base"}
        shared, kept = self.base.aggregate(Server(server.shared, server.kept["base"]), mean, fraction)
        if shared["x"] is not x:  # a base may need rounds in which x stays (MIME)
            d, own["moments"] = self.direction(own["moments"], subtract(shared["x"], x))
            shared = shared | {"x": add_scaled(x, d, self._rate(own))}
            own |= {"moves": own["moves"] + 1} if "moves" in own else {}
        return Server(shared, {"base": kept, **own})

    def _rate(self, own: dict[str, Any]) -> Weight:
        """Return η_s of this round; all runs of a grid have had as many rounds."""
        return at(self.server_rate, int(own["moves"].flatten()[0]) if "moves" in own else 0)

    def remark(self, problem: Problem) -> str:
        """Say that x may leave X at the server."""
        return "; ".join(filter(None, [self.base.remark(problem), may_leave_the_set(self, problem)]))


@dataclass(frozen=True)
class AdaptiveServer(ServerOptimiser, ABC):
    """A server optimiser with a step size for each coordinate.

        M ← β₁ M + (1 − β₁) Δ,      V ← a mean or sum of Δ²,      d = M / (√V + τ)

    M = 0 and V = τ² at the start, without bias correction, as in the paper (Flower starts from V = 0). server_rate is
    η_s, server_momentum is β₁ (the weight of the OLD M), adaptivity is τ: the smaller, the more d resembles a sign.
    """

    server_rate: Schedule = 0.01
    server_momentum: Weight = 0.9
    adaptivity: Weight = 0.001

    def __post_init__(self) -> None:
        super().__post_init__()
        require_old_weight("server_momentum", self.server_momentum)
        require_constant("adaptivity", self.adaptivity)
        require_positive("adaptivity", self.adaptivity)

    @abstractmethod
    def second(self, v: Tree, squares: Tree) -> Tree:
        """Return the new V, given Δ²."""

    def start(self, x: Tree) -> Moments:
        """Return M = 0 and V = τ²."""
        return {"m": zeros_like(x), "v": map_leaves(lambda leaf: torch.zeros_like(leaf) + self._tau(leaf) ** 2, x)}

    def direction(self, moments: Moments, change: Tree) -> tuple[Tree, Moments]:
        """Return M / (√V + τ) with the new moments."""
        m = mix(change, moments["m"], self.server_momentum)
        v = self.second(moments["v"], map_leaves(torch.square, change))
        return map_leaves(lambda p, q: p / (q.sqrt() + self._tau(q)), m, v), {"m": m, "v": v}

    def _tau(self, leaf: torch.Tensor) -> Weight:
        return align(self.adaptivity, leaf)


def may_leave_the_set(method: Algorithm, problem: Problem) -> str:
    """Return a remark on problems with a projection, which a server can't compute."""
    if problem.project is None:
        return ""
    return (
        f"{type(method).__name__} moves x at the server, where it is not projected: a model may lie outside the set of "
        f"{type(problem).__name__} until the clients' next step"
    )


def require_constant(field: str, value: Any) -> None:
    """Raise `InvalidValue` if a setting that must not change during a run is a schedule."""
    if callable(value):
        raise InvalidValue(field, value, "a number: only rates can follow a schedule")


def require_old_weight(field: str, value: Any) -> None:
    """Raise `InvalidValue` unless a value (or grid) is a number in [0, 1], the weight of what is old."""
    require_constant(field, value)
    require(field, value, lambda v: is_number(v) and 0 <= v <= 1, "a number in [0, 1]")
