"""Estimators of ∇F from samples, one in each file, and `ESTIMATORS`, which lists them by name."""

from typing import TYPE_CHECKING

from fedcso.core.registry import Registry

if TYPE_CHECKING:
    from fedcso.core.estimator import Estimator

ESTIMATORS: "Registry[Estimator]" = Registry(
    "estimator",
    __name__,
    {
        "plain": "plain:plain",
        "extrapolated": "extrapolated:extrapolated",
        "three_level": "three_level:three_level",
        "independent_jacobian": "independent_jacobian:independent_jacobian",
        "v_mlmc": "mlmc:v_mlmc",
        "rt_mlmc": "mlmc:rt_mlmc",
        "mean_outside": "mean_outside:mean_outside",
    },
)
"""All estimators by name. To add one, write a file and add a row here."""

AUTO = "auto"
"""The name that stands for a choice at the start of a run (`fedcso.theory.choice`)."""
