"""SLATE: FCSG without a server; clients average with their neighbours after every step.

    x_n ← Σ_j W_nj Π_X( x_j − (α/b) Σ_i ∇F̂(x_j; ξ_i, B_i) )

This is FCSG with q = 1 over a topology W, a ring unless the plan names another (`fedcso.core.topology`), so it shares
its code. Every client sends x to each of its neighbours and keeps its x. The mean over n moves by −α times the mean of
the gradients, and is what is evaluated. FCSG itself runs over a topology, too, with local steps between exchanges.

Reference: Wu et al., Serverless Federated AUPRC Optimization for Multi-Party Collaborative Imbalanced Data Mining, KDD
2023; the rule is that of the authors' code.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from fedcso.algorithms.fcsg import FCSG
from fedcso.core.errors import InvalidValue
from fedcso.core.plan import Plan
from fedcso.core.problem import Problem


@dataclass(frozen=True)
class SLATE(FCSG):
    """FCSG without a server: after every step, each client averages with its neighbours, on a ring by default.

    learning_rate is α.
    """

    use_when: ClassVar[str] = "if there is no server, and clients can average with their neighbours after every step"
    topology: ClassVar[str] = "ring"

    def check(self, plan: Plan, problem: Problem, clients: Sequence[Any]) -> None:
        """Raise `InvalidValue` unless clients average after every step."""
        require_single_steps("SLATE", "FCSG", plan)


def require_single_steps(method: str, base: str, plan: Plan) -> None:
    """Raise `InvalidValue` unless q = 1."""
    if plan.local_steps != 1:
        allowed = f"1 for {method}; for steps between exchanges use {base} with the topology ring"
        raise InvalidValue("local_steps", plan.local_steps, allowed)
