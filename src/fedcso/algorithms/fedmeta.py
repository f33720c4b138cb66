"""FedMeta: federated meta-learning, in which clients send meta-gradients and the server takes the step.

    x̃ = x − λ ∇L(x; support),       u_n = ( I − λ ∇²L(x; support) ) ∇L(x̃; query)       for one task of each client
    x ← x − α mean_n u_n

A client's meta-gradient is sent as x − α u_n, of which the mean is the same: this is FCSG with one local step per round
(and b = 1 for one task per client and round), so it shares its code. Clients send x and keep nothing. Meta-SGD, which
learns the rates λ too, is another problem and not included.

Reference: Chen, Luo, Dong, Li, He, Federated Meta-Learning with Fast Convergence and Efficient Communication, 2018. The
rule is written from memory; it could not be compared with the paper's text.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from fedcso.algorithms.fcsg import FCSG
from fedcso.algorithms.per_fedavg import require_adapting
from fedcso.core.errors import InvalidValue
from fedcso.core.plan import Plan
from fedcso.core.problem import Problem


@dataclass(frozen=True)
class FedMeta(FCSG):
    """Federated meta-learning: the server takes a step along the mean of the clients' meta-gradients.

    learning_rate is α; λ, the rate of the adaptation, belongs to the problem.
    """

    use_when: ClassVar[str] = "for meta-learning with an exchange after every step"

    def check(self, plan: Plan, problem: Problem, clients: Sequence[Any]) -> None:
        """Raise `FedcsoError` unless the problem adapts models to tasks in training, and q = 1."""
        if not require_adapting("FedMeta", problem).inner_steps:
            raise InvalidValue("inner_steps", 0, "at least 1 for FedMeta; to train without adaptation, use FedAvg")
        if plan.local_steps != 1:
            raise InvalidValue(
                "local_steps", plan.local_steps, "1 for FedMeta, whose clients send gradients; for more use Per-FedAvg"
            )
