"""Ways to estimate ∇F from samples, one idea a file; and the table of all of them."""

from fedcso.core.estimator import Estimator, mean_outside, plain
from fedcso.estimators.extrapolated import extrapolated
from fedcso.estimators.mlmc import rt_mlmc, v_mlmc

ESTIMATORS: dict[str, Estimator] = {
    "plain": plain,
    "extrapolated": extrapolated,
    "v_mlmc": v_mlmc,
    "rt_mlmc": rt_mlmc,
    "mean_outside": mean_outside,
}
"""Every estimator by name. A new one is a file and a row here."""

__all__ = ["ESTIMATORS", "extrapolated", "mean_outside", "plain", "rt_mlmc", "v_mlmc"]
