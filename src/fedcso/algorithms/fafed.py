"""FAFED: a step size for each coordinate that all clients share, around any method with momentum.

    client:    x ← Π_X( x − α u / D ),                   u: the direction of the method inside
    server:    V ← β₂ V + (1 − β₂) ū²,   D = √V + ρ      after averaging x and u as the method inside does

All clients divide by the same D for a whole round, so mean_n u_n/D = ū/D, which vanishes where ū does. With a D_n of
its own for each client (Adam moments that stay at clients) the fixed point is Σ_n ∇F_n/D_n = 0 instead, which is no
stationary point; therefore that is not offered. V = 0 at first, and D = 1 in the first round, in which u is not known
yet. With β₂ = 1 and ρ = 1 it is the method inside. The server sends D besides what the method inside shares, and keeps
V; clients send what the method inside sends, and hold D during the round.

Reference: Wu, Huang, Hu, Huang, Faster Adaptive Federated Learning, AAAI 2023, whose base is STORM with local steps
(here Acc-FCSG-M). That D is shared and held during a round follows the paper; its rule for V was not verified.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch

from fedcso.algorithms.acc_fcsg_m import AccFCSGM
from fedcso.algorithms.server_optimiser import require_constant, require_old_weight
from fedcso.algorithms.wrapper import Steering
from fedcso.core.algorithm import Algorithm, Server
from fedcso.core.errors import FedcsoError, require_positive
from fedcso.core.plan import Plan
from fedcso.core.problem import Problem
from fedcso.core.tree import Tree, Weight, align, map_leaves, mix, without, zeros_like

KEY = "preconditioner"


@dataclass(frozen=True)
class FAFED(Steering):
    """A step size for each coordinate that all clients share, around any method that shares u.

    base is the method inside, server_decay is β₂ (the weight of the OLD V), floor is ρ.
    """

    base: Algorithm = field(default_factory=AccFCSGM)
    server_decay: Weight = 0.99
    floor: Weight = 0.01

    use_when: ClassVar[str] = "if coordinates need different step sizes already in the local steps"

    def __post_init__(self) -> None:
        super().__post_init__()
        require_old_weight("server_decay", self.server_decay)
        require_constant("floor", self.floor)
        require_positive("floor", self.floor)

    def check(self, plan: Plan, problem: Problem, clients: Sequence[Any]) -> None:
        """Raise `FedcsoError` unless the base shares u, and no preconditioner of its own."""
        shared, name = self.base.init(torch.zeros(())).shared, type(self.base).__name__
        if "u" not in shared:
            raise FedcsoError(
                f"FAFED can't wrap {name}, which does not share u: set base to FCSG-M, Acc-FCSG-M or another method "
                "with momentum"
            )
        if KEY in shared:
            raise FedcsoError(f"FAFED can't wrap {name}, which has a preconditioner already: leave one of them out")
        super().check(plan, problem, clients)

    def init(self, x: Tree) -> Server:
        """Return the base's state, with D = 1 and V = 0."""
        shared, kept = self.base.init(x)
        return Server(shared | {KEY: map_leaves(torch.ones_like, x)}, {"base": kept, "v": zeros_like(x)})

    def hold(self, shared: dict[str, Tree]) -> tuple[dict[str, Tree], dict[str, Tree]]:
        """Hold D."""
        return without(shared, KEY), {KEY: shared[KEY]}

    def steer(self, held: dict[str, Tree], x: Tree, direction: Tree, t: int) -> Tree:
        """Return u / D."""
        return map_leaves(torch.div, direction, held[KEY])

    def aggregate(self, server: Server, mean: dict[str, Tree], fraction: Weight) -> Server:
        """Aggregate as the base does, then make D of the new ū."""
        before = Server(without(server.shared, KEY), server.kept["base"])
        shared, kept = self.base.aggregate(before, without(mean, KEY), fraction)
        v = mix(map_leaves(torch.square, shared["u"]), server.kept["v"], self.server_decay)
        return Server(shared | {KEY: map_leaves(self._divisor, v)}, {"base": kept, "v": v})

    def _divisor(self, v: torch.Tensor) -> torch.Tensor:
        return v.sqrt() + align(self.floor, v)
