"""Federated average precision behind scikit-learn's interface: `fit(X, y, groups=site)`, then predict."""

from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from fedcso.core.plan import Plan
from fedcso.core.task import Task
from fedcso.core.tree import map_leaves
from fedcso.datasets.examples import Examples
from fedcso.engines import run
from fedcso.models.score_nets import linear, mlp
from fedcso.problems.auprc import AUPRC
from fedcso.problems.scores import Scores
from fedcso.runs.methods import MethodSpec

ENOUGH = 1e-3
"""The least slope of the probabilities in the score: a higher score is never less probable."""


class FederatedAUPRCClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """A classifier for rare positives whose training data stay at their sites (here: in their groups).

    Sites only exchange models, as they would across a network; a site without positives does not train. The second
    of the sorted `classes_` is the positive one. `decision_function` is the ranking that was optimised, scaled and
    shifted (Platt) so that `predict_proba` is its sigmoid and `predict` says positive above 0. Where positives are
    rare, that is seldom: choose your own threshold on `predict_proba` by the precision or recall you need.
    """

    def __init__(
        self,
        algorithm: str = "FCSG-M",
        learning_rate: float = 0.3,
        rounds: int = 40,
        local_steps: int = 10,
        outer_batch: int = 8,
        inner_batch: int = 32,
        margin: float = 0.5,
        hidden: bool = True,
        clip: float = 1.0,
        random_state: Any = 0,
    ):
        self.algorithm = algorithm
        self.learning_rate = learning_rate
        self.rounds = rounds
        self.local_steps = local_steps
        self.outer_batch = outer_batch
        self.inner_batch = inner_batch
        self.margin = margin
        self.hidden = hidden
        self.clip = clip
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike, groups: ArrayLike | None = None) -> "FederatedAUPRCClassifier":  # noqa: N803
        """Train; `groups` says at which site each row is, and without it there is only one."""
        rows, labels = validate_data(self, X, y, dtype=np.float64, ensure_min_samples=2)
        check_classification_targets(labels)
        self.classes_, positive = np.unique(labels, return_inverse=True)
        if len(self.classes_) > 2:
            raise ValueError(
                "Only binary classification is supported. The type of the target is "
                f"{type_of_target(labels)}, with {len(self.classes_)} classes."
            )
        if len(self.classes_) < 2:
            raise ValueError(f"y has only one class, {self.classes_[0]!r}; there must be negatives and positives")
        sites = np.zeros(len(rows)) if groups is None else column_or_1d(groups)
        if pd.isna(sites).any():
            raise ValueError("groups has missing values; it must name the site of each row")
        if len(sites) != len(rows):
            raise ValueError(f"groups has {len(sites)} entries for {len(rows)} rows; it must name the site of each")
        self.mean_, self.scale_ = rows.mean(0), np.maximum(rows.std(0), 1e-12)
        inputs, truth = self._inputs(rows), torch.from_numpy(positive.astype(np.int64))
        shares = [torch.from_numpy(np.flatnonzero(sites == site)) for site in np.unique(sites)]
        algorithm, codec = MethodSpec.parse(self.algorithm).build({"learning_rate": self.learning_rate})
        plan = Plan(
            self.rounds,
            self.local_steps,
            self.outer_batch,
            self.inner_batch,
            clip=self.clip,
            evaluate_every=self.rounds,
        )
        self.problem_ = AUPRC(Scores(partial(mlp if self.hidden else linear, inputs.shape[1:])), self.margin)
        clients = [Examples(inputs[share], truth[share]) for share in shares]
        seed = int(check_random_state(self.random_state).randint(2**31))
        # In float64 from here on, so that a row's score does not depend on the rows beside it.
        trace = run(algorithm, Task(self.problem_, clients), plan, seed, codec=codec)
        self.x_ = map_leaves(torch.Tensor.double, trace.last)
        scores = self._scores(inputs)
        calibration = LogisticRegression().fit(scores, positive)
        self.slope_ = max(float(calibration.coef_[0, 0]), ENOUGH)
        self.shift_ = float(calibration.intercept_[0])
        return self

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:  # noqa: N803
        """How much a row looks positive; above 0 it is called so."""
        check_is_fitted(self)
        rows = validate_data(self, X, dtype=np.float64, reset=False)
        return self.slope_ * self._scores(self._inputs(rows))[:, 0] + self.shift_

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:  # noqa: N803
        """Probabilities of the two classes."""
        positive = expit(self.decision_function(X))
        return np.column_stack([1 - positive, positive])

    def predict(self, X: ArrayLike) -> NDArray[Any]:  # noqa: N803
        """The more probable class."""
        positive = (self.decision_function(X) > 0).astype(int)
        chosen: NDArray[Any] = self.classes_[positive]
        return chosen

    def _inputs(self, rows: NDArray[np.float64]) -> torch.Tensor:
        return torch.from_numpy(((rows - self.mean_) / self.scale_).astype(np.float32))

    def _scores(self, inputs: torch.Tensor) -> NDArray[np.float64]:
        with torch.no_grad():
            return self.problem_.scores.logits(self.x_, inputs.double()).numpy()[:, None]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.non_deterministic = False
        return tags
