"""The tasks of the experiment on rare positives: data thinned to a share of positives, and each method's objective.

The seed of a run decides also which rows train and validate (in tables: and test), which positives remain, and who
holds what. So intervals over seeds cover the choice of the few positives, which matters most when they are rare.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import torch

from fedcso.core.judge import Judge
from fedcso.core.problem import Problem
from fedcso.core.task import Task
from fedcso.datasets.examples import Examples, pool_examples
from fedcso.datasets.tables.sites import Sites, load_sites
from fedcso.experiments.rare_positives import Method
from fedcso.problems.at_share import judge_at_share
from fedcso.problems.auprc import AUPRC
from fedcso.problems.auroc import AUROC, auroc_judge
from fedcso.problems.cross_entropy import CrossEntropy
from fedcso.problems.scores import Scores, ranking_judge
from fedcso.problems.site_tasks import build_scores, make_site_task, share_of_positives

MARGIN = 1.0
"""s, for raw scores."""

POSITIVES, OTHERS = 500, {"train": 1000, "validation": 2000}
"""At most so many positives and other examples are evaluated during a run, for speed; test data are used whole."""


class Thinned(NamedTuple):
    """Sites whose training data have few positives, the share of these, and what is evaluated during a run."""

    sites: Sites
    share: float
    train: Examples
    validation: Examples


def thin(data: str, share: float, clients: int, mirrored: bool, moved: int, seed: int) -> Thinned:
    """Load data and remove training positives until they have the wanted share, or less if there are fewer."""
    positives, others = _count(data, clients, seed)
    kept = min(positives, max(1, round(others * share / (1 - share))))
    removed = 1 - kept / positives
    sites = load_sites(data, clients=clients, removed=removed, mirrored=mirrored, moved=moved, data_seed=seed)
    return Thinned(
        sites, share_of_positives(sites), *(_sample(getattr(sites, part), most) for part, most in OTHERS.items())
    )


def pose(method: Method, data: Thinned, train_on: str = "sites") -> Task:
    """Return the task of a method, whose judge selects by the average precision at the training share."""
    problem, judge = OBJECTIVES[method.problem](build_scores("auto", data.sites), data.share, dict(method.options))
    return make_site_task(problem, judge_at_share(judge, data.share), data.sites, train_on)


def for_run(task: Task, data: Thinned) -> Task:
    """Return the task as it is evaluated during a run: on validation data, and on training data for learning curves.

    Training data take the place of the test data, which are looked at once, when everything has been chosen.
    """
    return replace(task, test=data.train, validation=data.validation)


def measure_test(task: Task, model: object) -> dict[str, float]:
    """Return the metrics of a model on all test data."""
    return {name: float(value) for name, value in task.judge.evaluate(model, task.test.whole).items()}


def count_test(task: Task) -> tuple[int, int]:
    """Return the numbers of positives and of all examples in the test data."""
    labels = task.test.whole.labels
    return int(labels.sum()), len(labels)


@cache
def _count(data: str, clients: int, seed: int) -> tuple[int, int]:
    """Return the numbers of positives and of other examples for training before any are removed."""
    labels = torch.cat([part.labels for part in load_sites(data, clients=clients, removed=0.0, data_seed=seed).train])
    positives = int(labels.sum())
    return positives, len(labels) - positives


def _sample(parts: Sequence[Examples], others: int) -> Examples:
    """Return some positives and some other examples, equally many of every site as far as it has them."""
    chosen = []
    for part in parts:
        kinds = ((part.labels == label).nonzero().squeeze(1) for label in (1, 0))
        some = torch.cat([kind[: most // len(parts)] for kind, most in zip(kinds, (POSITIVES, others), strict=True)])
        chosen.append(Examples(part.inputs[some], part.labels[some]))
    return pool_examples(chosen)


def _auprc(scores: Scores, share: float, options: dict[str, Any]) -> tuple[Problem, Judge]:
    return AUPRC(scores, margin=MARGIN, sigmoid=False, **options), ranking_judge(scores)


def _auroc(scores: Scores, share: float, options: dict[str, Any]) -> tuple[Problem, Judge]:
    problem = AUROC(scores, share)
    return problem, auroc_judge(problem)


def _cross_entropy(scores: Scores, share: float, options: dict[str, Any]) -> tuple[Problem, Judge]:
    weight = (1 - share) / share if options.get("weighted") else 1.0
    return CrossEntropy(scores, weight, bool(options.get("balanced"))), ranking_judge(scores)


OBJECTIVES: dict[str, Callable[[Scores, float, dict[str, Any]], tuple[Problem, Judge]]] = {
    "auprc": _auprc,
    "auroc": _auroc,
    "cross_entropy": _cross_entropy,
}
"""By problem: what makes it, with its judge, of scores and the share of positives."""
