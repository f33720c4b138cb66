"""A scikit-learn classifier that maximises average precision over sites: `fit(X, y, groups=site)`, then `predict`."""

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

LEAST_SLOPE = 1e-3
"""The least slope of the calibration, so that a higher score always means a higher probability."""


class FederatedAUPRCClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """A classifier for rare positives that trains across sites, given as groups, without pooling their data.

    Sites exchange only models, as they would over a network; a site without positives does not train. The second of the
    sorted `classes_` is the positive class. `decision_function` returns the optimised ranking scores after Platt
    scaling: `predict_proba` is their sigmoid, and `predict` returns the positive class for scores above 0. If positives
    are rare, few scores are above 0: choose a threshold on `predict_proba` by the precision or recall that you need.

    Args:
        algorithm: the method, as on the command line: `NAME` or `NAME(option=value, …)`
        learning_rate: α, a number or a schedule as on the command line: `cosine(1)` falls over the whole run
        rounds: communication rounds
        local_steps: q, the steps of a site in a round
        outer_batch: b, positives per step
        inner_batch: m, examples that each positive is ranked against
        margin: s, by how much a positive should be above the others
        hidden: use a network with a hidden layer instead of a linear model
        clip: scale gradients with a larger norm down to this; 0 for never
        random_state: determines the initial model and the samples
    """

    def __init__(
        self,
        algorithm: str = "FCSG-M(momentum=0.3)",
        learning_rate: float | str = "cosine(1)",
        rounds: int = 40,
        local_steps: int = 10,
        outer_batch: int = 8,
        inner_batch: int = 32,
        margin: float = 1.0,
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
        """Train on rows `X` with labels `y`; `groups` names the site of each row, by default the same for all."""
        rows, labels = validate_data(self, X, y, dtype=np.float64, ensure_min_samples=2)
        check_classification_targets(labels)
        self.classes_, positive = np.unique(labels, return_inverse=True)
        if len(self.classes_) > 2:
            raise ValueError(
                "Only binary classification is supported. The type of the target is "
                f"{type_of_target(labels)}, with {len(self.classes_)} classes."
            )
        if len(self.classes_) < 2:
            raise ValueError(f"y has only one class, {self.classes_[0]!r}; it must have negatives and positives")
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
        # The model is used in float64, so that the score of a row does not depend on the other rows of a batch.
        trace = run(algorithm, Task(self.problem_, clients), plan, seed, codec=codec)
        self.x_ = map_leaves(torch.Tensor.double, trace.last)
        scores = self._scores(inputs)
        calibration = LogisticRegression().fit(scores, positive)
        self.slope_ = max(float(calibration.coef_[0, 0]), LEAST_SLOPE)
        self.shift_ = float(calibration.intercept_[0])
        return self

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:  # noqa: N803
        """Return the calibrated scores of rows; those above 0 are predicted to be positive."""
        check_is_fitted(self)
        rows = validate_data(self, X, dtype=np.float64, reset=False)
        return self.slope_ * self._scores(self._inputs(rows))[:, 0] + self.shift_

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:  # noqa: N803
        """Return the probabilities of the two classes for each row."""
        positive = expit(self.decision_function(X))
        return np.column_stack([1 - positive, positive])

    def predict(self, X: ArrayLike) -> NDArray[Any]:  # noqa: N803
        """Return the more probable class of each row."""
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
