"""Estimators for the same samples: the problems, the contenders, and the settings of the full and the quick version."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from fedcso.algorithms import ALGORITHMS
from fedcso.core.algorithm import Algorithm
from fedcso.core.schedules import Cosine
from fedcso.experiments.experiment import Settings

METHODS = ("FCSG", "FCSG-M", "Acc-FCSG-M")

PROBLEMS_COMPARED: dict[str, dict[str, Any]] = {
    "invariant_logistic": {"noise": 2.0, "test_points": 1},
    "instrumental": {},
    "policy_evaluation": {"features": 5},
    "sinkhorn_dro": {},
    "information": {},
}
"""Problems with a known gradient that vanishes at optima only, and their options."""

QUICK = ("invariant_logistic", "instrumental", "information")
"""Those of the quick version."""

OUTER = {
    "invariant_logistic": "log(1 + exp(−y))",
    "instrumental": "½ y²",
    "policy_evaluation": "½ y²",
    "sinkhorn_dro": "log y",
    "information": "−max(0, y)",
}
"""f of each problem, for titles."""


class Contender(NamedTuple):
    """An estimator with its m."""

    estimator: str
    m: int

    @property
    def label(self) -> str:
        """Return the name in tables and figures."""
        return f"{self.estimator}, m = {self.m}"


class Cell(NamedTuple):
    """A problem, a method and an estimator with its m."""

    problem: str
    method: str
    contender: Contender

    @property
    def name(self) -> str:
        """Return the name of a unit of work."""
        return f"{self.problem} {self.method} {self.contender.label}"


@dataclass(frozen=True, kw_only=True)
class BiasSettings(Settings):
    """The settings of the experiment."""

    clients: int = 8
    problems: Mapping[str, Mapping[str, Any]]
    estimators: Sequence[Sequence[Any]]
    """Name and m of every estimator to compare."""
    samples: int
    """Inner samples that each client draws in a run."""
    outer_batch: int = 8
    local_steps: int = 5
    momentum: float = 0.3
    rates: Sequence[float]
    """Learning rates to try; with a single one there are no trials."""
    trial_seeds: Sequence[int] = (1000, 1001)
    seeds: Sequence[int]
    evaluations: int = 8

    @property
    def contenders(self) -> list[Contender]:
        """The estimators to compare."""
        return [Contender(*one) for one in self.estimators]

    def cells(self) -> list[Cell]:
        """Return all combinations."""
        return [Cell(*key) for key in ((p, m, c) for p in self.problems for m in METHODS for c in self.contenders)]

    def build(self, method: str, rate: float) -> Algorithm:
        """Return a method with a learning rate that falls to nearly 0 by the end."""
        values: dict[str, Any] = {"learning_rate": Cosine(rate)}
        if method != "FCSG":
            values["momentum"] = self.momentum
        return ALGORITHMS[method](**values)


def settings(quick: bool) -> BiasSettings:
    """Return the settings of the full experiment; `quick` has short runs with a single learning rate."""
    fixed = ["plain", "extrapolated", "three_level", "independent_jacobian", "mean_outside"]
    return BiasSettings(
        problems={name: PROBLEMS_COMPARED[name] for name in (QUICK if quick else PROBLEMS_COMPARED)},
        estimators=[*([name, 8] for name in fixed), ["v_mlmc", 64], ["rt_mlmc", 64], ["plain", 64]],
        samples=2560 if quick else 12_800,
        rates=[0.3] if quick else [0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0],
        seeds=list(range(2 if quick else 10)),
    )
