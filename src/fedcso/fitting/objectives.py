"""What `fit` tries: objectives, each with the method that minimises it, its batch sizes and learning rates.

Every objective sees the same number of examples per site and step. Learning rates fall along half a cosine (CODA+: in
stages, as its authors do). To add an objective, add an entry to `OBJECTIVES`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fedcso.core.algorithm import Algorithm
from fedcso.core.judge import Judge
from fedcso.core.problem import Problem
from fedcso.core.schedules import Cosine
from fedcso.datasets.tables.sites import Sites
from fedcso.problems.auprc import AUPRC
from fedcso.problems.auroc import AUROC, auroc_judge
from fedcso.problems.cross_entropy import CrossEntropy
from fedcso.problems.scores import Scores, ranking_judge
from fedcso.problems.site_tasks import share_of_positives
from fedcso.runs.methods import MethodSpec

RATES = (0.1, 0.3, 1.0, 3.0)
POSITIVES, OTHERS = 8, 32
"""Positives (b) and examples they are compared with (m) per site and step; objectives without pairs see b + m."""


@dataclass(frozen=True)
class Objective:
    """An objective and the method that minimises it."""

    title: str
    problem: str
    """The name of the problem in `fedcso.problems.PROBLEMS`."""
    build: Callable[[Scores, Sites], tuple[Problem, Judge]]
    """(network, sites) → the problem and its judge; the same that the problem's name and `options` give."""
    method: str
    """The name of the method in `fedcso.algorithms.ALGORITHMS`."""
    settings: Callable[[float, int], dict[str, Any]]
    """(learning rate, steps of the run) → the method's hyper-parameters."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """The problem's options that differ from their defaults."""
    outer_batch: int = POSITIVES + OTHERS
    inner_batch: int = OTHERS
    after: str | None = None
    """The objective in `OBJECTIVES` that is minimised first, for half of the steps; None for none."""

    def algorithm(self, rate: float, steps: int) -> Algorithm:
        """Return the method with this learning rate, for a run of so many steps."""
        return self.spec().build({}, self.settings(rate, steps)).algorithm

    def spec(self) -> MethodSpec:
        """Return the method's specification, without settings."""
        return MethodSpec.parse(self.method)


def _average_precision(scores: Scores, sites: Sites) -> tuple[Problem, Judge]:
    return AUPRC(scores), ranking_judge(scores)


def _precision_itself(scores: Scores, sites: Sites) -> tuple[Problem, Judge]:
    return AUPRC(scores, logarithm=False), ranking_judge(scores)


def _average_precision_and_cross_entropy(scores: Scores, sites: Sites) -> tuple[Problem, Judge]:
    return AUPRC(scores, cross_entropy=1.0), ranking_judge(scores)


def _cross_entropy(scores: Scores, sites: Sites) -> tuple[Problem, Judge]:
    return CrossEntropy(scores), ranking_judge(scores)


def _weighted_cross_entropy(scores: Scores, sites: Sites) -> tuple[Problem, Judge]:
    rate = share_of_positives(sites)
    return CrossEntropy(scores, (1 - rate) / rate), ranking_judge(scores)


def _balanced_cross_entropy(scores: Scores, sites: Sites) -> tuple[Problem, Judge]:
    return CrossEntropy(scores, balanced=True), ranking_judge(scores)


def _area_under_roc(scores: Scores, sites: Sites) -> tuple[Problem, Judge]:
    problem = AUROC(scores, share_of_positives(sites))
    return problem, auroc_judge(problem)


def _falling(rate: float, steps: int) -> dict[str, Any]:
    return {"learning_rate": Cosine(rate)}


def _falling_with_momentum(rate: float, steps: int) -> dict[str, Any]:
    return {"learning_rate": Cosine(rate), "momentum": 0.3}


def _in_stages(rate: float, steps: int) -> dict[str, Any]:
    return {"learning_rate": rate, "stage_steps": max(1, steps // 2)}


OBJECTIVES = {
    "auprc": Objective(
        "FCSG-M on average precision",
        "auprc",
        _average_precision,
        "FCSG-M",
        _falling_with_momentum,
        outer_batch=POSITIVES,
    ),
    "cross_entropy": Objective("FedAvg on cross-entropy", "cross_entropy", _cross_entropy, "FedAvg", _falling),
    "weighted": Objective(
        "FedAvg on cross-entropy with weighted classes",
        "cross_entropy",
        _weighted_cross_entropy,
        "FedAvg",
        _falling,
        {"weighted": True},
    ),
    "balanced": Objective(
        "FedAvg on cross-entropy with balanced batches",
        "cross_entropy",
        _balanced_cross_entropy,
        "FedAvg",
        _falling,
        {"balanced": True},
    ),
    "auprc_after_weighted": Objective(
        "FedAvg on cross-entropy with weighted classes, then FCSG-M on average precision",
        "auprc",
        _average_precision,
        "FCSG-M",
        _falling_with_momentum,
        outer_batch=POSITIVES,
        after="weighted",
    ),
    "joint": Objective(
        "FCSG-M on average precision and cross-entropy together",
        "auprc",
        _average_precision_and_cross_entropy,
        "FCSG-M",
        _falling_with_momentum,
        {"cross_entropy": 1.0},
        outer_batch=POSITIVES,
    ),
    "precision": Objective(
        "FCSG-M on average precision without its logarithm",
        "auprc",
        _precision_itself,
        "FCSG-M",
        _falling_with_momentum,
        {"logarithm": False},
        outer_batch=POSITIVES,
    ),
    "auroc": Objective("CODA+ on AUROC", "auroc", _area_under_roc, "CODA+", _in_stages),
}
"""All objectives, in the order in which they are tried."""

ORDINARY = ("cross_entropy", "weighted", "balanced")
"""Ordinary federated learning; the best of these is always run to the end, for comparison."""
