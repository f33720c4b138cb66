"""FedProx: a proximal term that holds clients near the round's start, around any method.

    x ← Π_X( x − α ( d + μ (x − x_start) ) ),        d: the direction of the method inside

x_start is what the server sent. The term is added to the direction, not to the gradient: x_start changes in every round
and must not stay in a momentum u. It shortens the drift of unlike clients and does not remove it (SCAFFOLD does). With
μ = 0 or q = 1 it is the method inside. Clients send what the method inside sends, and hold x_start during the round.

Reference: Li et al., Federated Optimization in Heterogeneous Networks, MLSys 2020, with a fixed number of local steps
instead of an inexact solution of the local problem.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from fedcso.algorithms.wrapper import Steering
from fedcso.core.algorithm import Schedule, at
from fedcso.core.errors import FedcsoError, require_nonnegative
from fedcso.core.plan import Plan
from fedcso.core.problem import Problem
from fedcso.core.tree import Tree, add_scaled, subtract


@dataclass(frozen=True)
class FedProx(Steering):
    """A proximal term that holds clients near the round's start, around any method.

    base is the method inside, prox_weight is μ (0 for the method itself).
    """

    prox_weight: Schedule = 0.01

    use_when: ClassVar[str] = "if unlike clients drift apart in many local steps, and no state can stay with them"

    def __post_init__(self) -> None:
        super().__post_init__()
        require_nonnegative("prox_weight", self.prox_weight)

    def check(self, plan: Plan, problem: Problem, clients: Sequence[Any]) -> None:
        """Raise `FedcsoError` if clients start from two points, of which x_start is one only (Fed-GLOMO)."""
        if "previous" in self.base.init(torch.zeros(())).shared:
            raise FedcsoError(
                f"FedProx can't wrap {type(self.base).__name__}, whose clients start from the server's previous x; "
                "use another base"
            )
        super().check(plan, problem, clients)

    def hold(self, shared: dict[str, Tree]) -> tuple[dict[str, Tree], dict[str, Tree]]:
        """Hold x_start."""
        return shared, {"start": shared["x"]}

    def steer(self, held: dict[str, Tree], x: Tree, direction: Tree, t: int) -> Tree:
        """Return d + μ (x − x_start)."""
        return add_scaled(direction, subtract(x, held["start"]), at(self.prox_weight, t))
