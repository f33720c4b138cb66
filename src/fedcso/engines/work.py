"""What every client of a run is told, and all that it needs besides its own data."""

from dataclasses import dataclass

from fedcso.core.algorithm import Algorithm
from fedcso.core.codec import Codec, Round, full
from fedcso.core.errors import FedcsoError
from fedcso.core.estimator import Estimator
from fedcso.core.plan import Plan
from fedcso.core.problem import Problem
from fedcso.estimators.plain import plain


@dataclass(frozen=True)
class Work:
    """A method on a problem, in which portions, with which seed, and how what is shared travels."""

    algorithm: Algorithm
    problem: Problem
    plan: Plan
    seed: int = 0
    estimator: Estimator = plain
    codec: Codec = full
    device: str = "cpu"

    def __post_init__(self) -> None:
        require_compatible(self.algorithm, self.estimator, self.plan)

    def round(self, number: int) -> Round:
        """Return what is known of a round before it begins."""
        return Round(number, self.plan, self.algorithm)


def require_compatible(algorithm: Algorithm, estimator: Estimator, plan: Plan) -> None:
    """Raise if a method can't use an estimator, or the estimator the plan's inner batch, whatever the problem."""
    estimator.check(plan.inner_batch)
    estimator.check(plan.inner_batch_most or plan.inner_batch)
    if algorithm.tracks and not estimator.is_plain:
        method = type(algorithm).__name__
        raise FedcsoError(f"estimator: {method} tracks the inner value and uses no other estimator than 'plain'")
