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
        self.estimator.check(self.plan.inner_batch)
        self.estimator.check(self.plan.inner_batch_most or self.plan.inner_batch)
        if self.algorithm.tracks and not self.estimator.is_plain:
            method = type(self.algorithm).__name__
            raise FedcsoError(f"estimator: {method} tracks the inner value and uses no other estimator than 'plain'")

    def round(self, number: int) -> Round:
        """Return what is known of a round before it begins."""
        return Round(number, self.plan, self.algorithm)
