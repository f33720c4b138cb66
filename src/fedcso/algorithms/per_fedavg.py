"""Per-FedAvg: personalised federated averaging, which learns a model that every client adapts to its own data.

    x̃ = x − λ ∇L_n(x; D)                                         on m inner samples
    x ← x − α ( I − λ ∇²L_n(x; D) ) ∇L_n(x̃; D'),                  averaged over clients after every q steps

This is FCSG on a problem with one task per client (`personalised`, or `maml` with `tasks` = 1), so it shares its code.
How the second derivatives are taken is a setting of the problem: exactly, not at all (FO: `first_order`), or by
differences of gradients (HF: `difference`). The paper takes them on samples D'' that are independent of D; the
estimator `independent_jacobian` does that, and extrapolates ∇L_n(x̃; D') besides. Clients send x and keep nothing.

Reference: Fallah, Mokhtari, Ozdaglar, Personalized Federated Learning with Theoretical Guarantees: A Model-Agnostic
Meta-Learning Approach, NeurIPS 2020. The rule is that of the paper as public code has it, where both steps start at x.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from fedcso.algorithms.fcsg import FCSG
from fedcso.core.errors import FedcsoError, InvalidValue
from fedcso.core.plan import Plan
from fedcso.core.problem import Adapting, Lasting, Problem


@dataclass(frozen=True)
class PerFedAvg(FCSG):
    """Personalised federated averaging: FCSG for a model that every client adapts to its own data.

    learning_rate is α; λ, the rate of the adaptation, belongs to the problem.
    """

    use_when: ClassVar[str] = "for personalised models: each client adapts the common model to its own data"

    def check(self, plan: Plan, problem: Problem, clients: Sequence[Any]) -> None:
        """Raise `FedcsoError` unless every client has one task, to which models are adapted in training."""
        adapting = require_adapting("Per-FedAvg", problem)
        if not adapting.inner_steps:
            raise InvalidValue("inner_steps", 0, "at least 1 for Per-FedAvg; to train without adaptation, use FedAvg")
        for number, data in enumerate(clients):
            if adapting.task_lasts(data) < Lasting.RUN:
                raise FedcsoError(
                    f"Per-FedAvg needs one task per client, but client {number} has several: use personalised, or maml "
                    "with tasks = 1"
                )


def require_adapting(method: str, problem: Problem) -> Adapting:
    """Return the problem; raise `FedcsoError` unless it adapts models to tasks."""
    if not isinstance(problem, Adapting):
        raise FedcsoError(
            f"{method} can't be used with {type(problem).__name__}: it needs a problem that adapts models to tasks, "
            "such as personalised or maml"
        )
    return problem
