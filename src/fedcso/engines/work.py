"""What every client of a run needs to know, besides its own data."""

from dataclasses import dataclass

from fedcso.core.algorithm import Algorithm, bind_schedules
from fedcso.core.codec import Codec, Round, full
from fedcso.core.errors import FedcsoError
from fedcso.core.estimator import Estimator
from fedcso.core.plan import Plan
from fedcso.core.problem import Problem
from fedcso.estimators.plain import plain


@dataclass(frozen=True)
class Work:
    """Method, problem, plan, seed, estimator, codec and device of a run.

    The method's schedules are bound to the length of the run here, for simulations and for real sites.
    """

    algorithm: Algorithm
    problem: Problem
    plan: Plan
    seed: int = 0
    estimator: Estimator = plain
    codec: Codec = full
    device: str = "cpu"

    def __post_init__(self) -> None:
        object.__setattr__(self, "algorithm", bind_schedules(self.algorithm, self.plan))
        require_compatible(self.algorithm, self.estimator, self.plan)

    def round(self, number: int) -> Round:
        """Return the description of a round that server and clients share."""
        return Round(number, self.plan, self.algorithm)


def require_compatible(algorithm: Algorithm, estimator: Estimator, plan: Plan) -> None:
    """Raise if the method can't use the estimator, or the estimator the plan's inner batch size."""
    estimator.check(plan.inner_batch)
    if algorithm.tracks and not estimator.is_plain:
        method = type(algorithm).__name__
        raise FedcsoError(f"{method} tracks the inner value and can't use another estimator: set --estimator plain")
