"""ComFedL: compositional federated learning, for losses that are distributionally robust across clients.

    ĝ = mean loss of m examples of the client,       x ← x − α exp( (ĝ(x) − c)/λ ) ∇ĝ(x),
    averaged over clients after every q steps

This is FCSG with the client for ξ and f(y) = λ exp((y − c)/λ), the problem `robust`, so it shares its code. The weight
exp(·) is computed from the examples of the step alone, whence a bias that falls with m; FGDRO-KL tracks it instead.
Clients send x and keep nothing.

Reference: Huang, Li, Compositional federated learning: applications in distributionally robust averaging and meta
learning, 2021. The rule is written from memory; whether the paper averages after every step (q = 1) could not be
verified.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from fedcso.algorithms.fcsg import FCSG
from fedcso.core.errors import FedcsoError
from fedcso.core.plan import Plan
from fedcso.core.problem import ExponentialOuter, Problem


@dataclass(frozen=True)
class ComFedL(FCSG):
    """Compositional federated learning: FCSG where clients with large losses get larger weights, for robust.

    learning_rate is α; λ belongs to the problem.
    """

    use_when: ClassVar[str] = "if clients with large losses should count more"

    def check(self, plan: Plan, problem: Problem, clients: Sequence[Any]) -> None:
        """Raise `FedcsoError` unless f(y) = λ exp((y − c)/λ)."""
        require_exponential("ComFedL", problem)


def require_exponential(method: str, problem: Problem) -> ExponentialOuter:
    """Return the problem; raise `FedcsoError` unless f(y) = λ exp((y − c)/λ)."""
    if not isinstance(problem, ExponentialOuter):
        raise FedcsoError(
            f"{method} can't be used with {type(problem).__name__}: it needs a problem that gives clients weights by "
            "their losses, such as robust"
        )
    return problem
