"""Scikit-learn classifiers for rare positives that train across sites: `fit(X, y, groups=site)`, then `predict`."""

from abc import abstractmethod
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
from fedcso.datasets.examples import Examples, pool_examples
from fedcso.datasets.tables.sites import Sites
from fedcso.engines import run
from fedcso.fitting.budget import plan_search
from fedcso.fitting.search import Search
from fedcso.fitting.train import Trainer
from fedcso.models.score_nets import linear, mlp
from fedcso.problems.auprc import AUPRC
from fedcso.problems.scores import Scores
from fedcso.reports.calibration import calibrate, log_odds
from fedcso.reports.score_counts import fixed_bins
from fedcso.runs.methods import MethodSpec
from fedcso.runs.study import run_in_memory

LEAST_SLOPE = 1e-3
"""The least slope of Platt scaling, so that a higher score always means a higher probability."""

TINY_SLOPE = 1e-6
"""Added to the slope of other calibrations for the same reason."""


class _SiteClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """What classifiers across sites share: checks of the input, standardised inputs, predictions from log-odds.

    The second of the sorted `classes_` is the positive class. `decision_function` returns calibrated log-odds:
    `predict_proba` is their sigmoid, and `predict` returns the positive class for log-odds above 0. If positives are
    rare, few are above 0: choose a threshold on `predict_proba` by the precision or recall that you need.
    """

    def fit(self, X: ArrayLike, y: ArrayLike, groups: ArrayLike | None = None) -> Any:  # noqa: N803
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
        examples = Examples(self._inputs(rows), torch.from_numpy(positive.astype(np.int64)))
        shares = [torch.from_numpy(np.flatnonzero(sites == site)) for site in np.unique(sites)]
        self._train(examples, shares, int(check_random_state(self.random_state).randint(2**31)))
        return self

    @abstractmethod
    def _train(self, examples: Examples, shares: list[torch.Tensor], seed: int) -> None:
        """Train on the sites' shares of the examples."""

    @abstractmethod
    def _log_odds(self, inputs: torch.Tensor) -> NDArray[np.float64]:
        """Return the calibrated log-odds of standardised rows."""

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:  # noqa: N803
        """Return the calibrated log-odds of rows; those above 0 are predicted to be positive."""
        check_is_fitted(self)
        return self._log_odds(self._inputs(validate_data(self, X, dtype=np.float64, reset=False)))

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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.non_deterministic = False
        return tags


class FederatedClassifier(_SiteClassifier):
    """A classifier for rare positives that chooses objective, network and settings itself, as `fedcso fit` does.

    A quarter of the rows of each site and label is kept for validation, by which the model is chosen and calibrated.
    Sites exchange only models, as they would over a network.

    Args:
        minutes: how long to search; tables rarely need the default
        net: linear, mlp or your own as path.py:Name; auto tries linear and mlp
        random_state: determines the split, the initial models and the samples
    """

    def __init__(self, minutes: float = 5.0, net: str = "auto", random_state: Any = 0):
        self.minutes = minutes
        self.net = net
        self.random_state = random_state

    def _train(self, examples: Examples, shares: list[torch.Tensor], seed: int) -> None:
        rng = np.random.default_rng(seed)
        parts: dict[bool, list[Examples]] = {True: [], False: []}
        for share in shares:
            held = torch.zeros(len(share), dtype=torch.bool)
            for label in (0, 1):
                own = rng.permutation(np.flatnonzero((examples.labels[share] == label).numpy()))
                held[own[3::4]] = True
            for validates, some in parts.items():
                chosen = share[held == validates]
                some.append(Examples(examples.inputs[chosen], examples.labels[chosen]))
        validation = pool_examples(parts[True])
        if not 0 < int(validation.labels.sum()) < len(validation.labels):
            raise ValueError("y has too few rows of a class: at least one site must have four rows of each class")
        sites = Sites([str(n) for n in range(len(shares))], parts[False], parts[True], parts[True], [])
        nets = ("linear", "mlp") if self.net == "auto" else (self.net,)
        search = Search(Trainer(sites, run_in_memory), plan_search(self.minutes, sites, nets), seed, lambda line: None)
        best = search.find()[0]
        self.chosen_ = best.group.title
        self.network_ = best.network().module.double()
        scores = self._scores(validation.inputs)
        self.calibration_ = calibrate(fixed_bins().count(scores, validation.labels.numpy()))

    def _log_odds(self, inputs: torch.Tensor) -> NDArray[np.float64]:
        scores = self._scores(inputs)
        # Calibration gives rows of different scores the same probability where validation rows don't tell them apart.
        return np.asarray(log_odds(self.calibration_.apply(scores)) + TINY_SLOPE * scores)

    def _scores(self, inputs: torch.Tensor) -> NDArray[np.float64]:
        # In float64, so that the score of a row does not depend on the other rows of a batch.
        with torch.no_grad():
            return np.asarray(self.network_(inputs.double()).flatten().numpy())


class FederatedAUPRCClassifier(_SiteClassifier):
    """A classifier that maximises average precision across sites with given settings; see `FederatedClassifier` too.

    Sites exchange only models, as they would over a network; a site without positives does not train. The ranking
    scores become log-odds by Platt scaling.

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

    def _train(self, examples: Examples, shares: list[torch.Tensor], seed: int) -> None:
        inputs, labels = examples
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
        clients = [Examples(inputs[share], labels[share]) for share in shares]
        # The model is used in float64, so that the score of a row does not depend on the other rows of a batch.
        trace = run(algorithm, Task(self.problem_, clients), plan, seed, codec=codec)
        self.x_ = map_leaves(torch.Tensor.double, trace.last)
        calibration = LogisticRegression().fit(self._scores(inputs), labels.numpy())
        self.slope_ = max(float(calibration.coef_[0, 0]), LEAST_SLOPE)
        self.shift_ = float(calibration.intercept_[0])

    def _log_odds(self, inputs: torch.Tensor) -> NDArray[np.float64]:
        return self.slope_ * self._scores(inputs)[:, 0] + self.shift_

    def _scores(self, inputs: torch.Tensor) -> NDArray[np.float64]:
        with torch.no_grad():
            return self.problem_.scores.logits(self.x_, inputs.double()).numpy()[:, None]
