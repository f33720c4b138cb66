"""SLATE-M: Acc-FCSG-M without a server; clients average x and u with their neighbours after every step.

    u_j ← (1/b) Σ_i ∇F̂(x_j; ξ_i, B_i) + (1 − β) ( u_j − (1/b) Σ_i ∇F̂(x_j of the last step; ξ_i, B_i) )
    x_n ← Σ_j W_nj Π_X( x_j − α u_j ),        u_n ← Σ_j W_nj u_j

This is Acc-FCSG-M with q = 1 over a topology W, a ring unless the plan names another (`fedcso.core.topology`), so it
shares its code. Every client sends x and u to each of its neighbours, and keeps them and its previous iterate.

Reference: Wu et al., Serverless Federated AUPRC Optimization for Multi-Party Collaborative Imbalanced Data Mining, KDD
2023. The authors' code for this method is not public: that u is averaged as x is (and not tracked by
v ← Wv + u_t − u_{t−1}) could not be verified.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from fedcso.algorithms.acc_fcsg_m import AccFCSGM
from fedcso.algorithms.slate import require_single_steps
from fedcso.core.plan import Plan
from fedcso.core.problem import Problem


@dataclass(frozen=True)
class SLATEM(AccFCSGM):
    """Acc-FCSG-M without a server: after every step, each client averages x and u with its neighbours.

    learning_rate is α, momentum is β (the weight of the NEW gradient).
    """

    use_when: ClassVar[str] = "as SLATE, if samples are more expensive than computation"
    topology: ClassVar[str] = "ring"

    def check(self, plan: Plan, problem: Problem, clients: Sequence[Any]) -> None:
        """Raise `InvalidValue` unless clients average after every step."""
        require_single_steps("SLATE-M", "Acc-FCSG-M", plan)
