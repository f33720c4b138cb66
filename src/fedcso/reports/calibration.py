"""Scores as probabilities, fitted on validation data of which only counts in bins leave the sites.

Platt scaling: log p/(1 − p) = a s + b, by logistic regression on the bins' centres s_j with P_j positives and N_j
negatives. P positives and N negatives have the targets

    t₊ = (P + 1)/(P + 2),    t₋ = 1/(N + 2)

instead of 1 and 0, which keeps a and b finite where scores separate the labels. a is not allowed below 0. From counts
in `fixed_bins` the probabilities of logits agree with a fit to the rows themselves to about 1e-4.

Isotonic regression: the non-decreasing step function of s nearest to P_j/(P_j + N_j), weighted by P_j + N_j (pool
adjacent violators), kept within [t₋, t₊], because some rows without a positive don't make a probability 0.

References: Platt, Probabilistic Outputs for Support Vector Machines, 1999; Zadrozny, Elkan, Transforming Classifier
Scores into Accurate Multiclass Probability Estimates, KDD 2002.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from fedcso.core.errors import FedcsoError
from fedcso.reports.score_counts import FURTHEST, ScoreCounts
from fedcso.reports.shares import require_share

ISOTONIC_FROM = 200
"""Isotonic regression, which can follow any rising curve, needs this many positives and negatives not to overfit."""


@dataclass(frozen=True)
class Calibration:
    """A map from scores to probabilities that never falls: straight lines in log-odds between knots, and beyond them.

        log p/(1 − p) = interpolation of log_odds at s + slope · (how far s is beyond the outermost knots)

    Platt scaling is one knot, (0, b), with slope a; isotonic regression has many knots and slope 0.
    """

    method: str
    """How it was fitted, for people."""
    scores: tuple[float, ...]
    """Of the knots, rising."""
    log_odds: tuple[float, ...]
    slope: float
    prevalence: float
    """The share of positives for which the probabilities hold."""

    def __post_init__(self) -> None:
        rising = len(self.scores) > 0 and (np.diff(self.scores) > 0).all() and (np.diff(self.log_odds) >= 0).all()
        finite = np.isfinite([*self.scores, *self.log_odds, self.slope]).all()
        if len(self.scores) != len(self.log_odds) or not (rising and finite and self.slope >= 0):
            raise FedcsoError("a calibration needs finite knots with rising scores, and log-odds that don't fall")
        require_share("prevalence", self.prevalence)

    def apply(self, scores: np.ndarray) -> np.ndarray:
        """Return the probability of a positive for each score."""
        from scipy.special import expit

        within = np.clip(np.asarray(scores, dtype=np.float64), -FURTHEST, FURTHEST)
        beyond = within - np.clip(within, self.scores[0], self.scores[-1])
        return np.asarray(expit(np.interp(within, self.scores, self.log_odds) + self.slope * beyond))

    def at_prevalence(self, prevalence: float) -> "Calibration":
        """Return the calibration for another share π of positives, if scores within each label stay as they are.

        The odds of all probabilities are multiplied by odds(π)/odds(prevalence).
        """
        require_share("prevalence", prevalence)
        shift = float(log_odds(prevalence) - log_odds(self.prevalence))
        return replace(self, log_odds=tuple(value + shift for value in self.log_odds), prevalence=prevalence)

    def to_dict(self) -> dict[str, Any]:
        """Return what JSON can keep; `from_dict` gives the same calibration again."""
        return asdict(self)

    @classmethod
    def from_dict(cls, written: Mapping[str, Any]) -> "Calibration":
        """Return what `to_dict` wrote; raise if it is not a calibration."""
        try:
            knots = {name: tuple(map(float, written[name])) for name in ("scores", "log_odds")}
            return cls(**{**written, **knots})
        except (FedcsoError, LookupError, TypeError, ValueError) as error:
            raise FedcsoError(f"this is not a calibration as fedcso writes it ({error})") from error


def calibrate(counts: ScoreCounts) -> Calibration:
    """Fit isotonic regression if there are `ISOTONIC_FROM` positives and as many negatives, else Platt scaling."""
    enough = min(counts.negatives.sum(), counts.positives.sum()) >= ISOTONIC_FROM
    return isotonic(counts) if enough else platt(counts)


def platt(counts: ScoreCounts) -> Calibration:
    """Fit Platt scaling; where high scores don't go with positives, the slope is 0 and all probabilities are equal."""
    from sklearn.linear_model import LogisticRegression

    low, high, prevalence = _targets(counts)
    _, centres, negatives, positives = counts.without_empty_bins()
    as_positive = positives * high + negatives * low
    weights = np.concatenate([as_positive, positives + negatives - as_positive])
    slope, intercept = 0.0, float(log_odds(as_positive.sum() / weights.sum()))
    middle = np.average(centres, weights=positives + negatives)
    spread = np.sqrt(np.average((centres - middle) ** 2, weights=positives + negatives))
    if len(centres) > 1:
        scaled = (centres - middle) / spread
        labels = np.repeat([1, 0], len(centres))
        regression = LogisticRegression(C=np.inf, solver="newton-cholesky", tol=1e-10, max_iter=1000)
        regression.fit(np.tile(scaled, 2)[:, None], labels, sample_weight=weights)
        fitted = float(regression.coef_[0, 0] / spread)
        if fitted > 0:
            slope, intercept = fitted, float(regression.intercept_[0] - fitted * middle)
    return Calibration("Platt scaling", (0.0,), (intercept,), slope, prevalence)


def isotonic(counts: ScoreCounts) -> Calibration:
    """Fit isotonic regression."""
    from sklearn.isotonic import IsotonicRegression

    low, high, prevalence = _targets(counts)
    _, centres, negatives, positives = counts.without_empty_bins()
    rows = positives + negatives
    regression = IsotonicRegression(y_min=low, y_max=high).fit(centres, positives / rows, sample_weight=rows)
    knots, values = regression.X_thresholds_, regression.y_thresholds_
    return Calibration("isotonic regression", tuple(knots.tolist()), tuple(log_odds(values).tolist()), 0.0, prevalence)


def log_odds(share: Any) -> Any:
    """log p/(1 − p)."""
    return np.log(share) - np.log1p(-share)


def _targets(counts: ScoreCounts) -> tuple[float, float, float]:
    """Return t₋, t₊ and the share of positives; raise without both labels."""
    negatives, positives = int(counts.negatives.sum()), int(counts.positives.sum())
    if not negatives or not positives:
        raise FedcsoError(
            f"scores can't be calibrated: the validation data hold {positives} positives and {negatives} negatives, "
            "and both are needed; give the validation data more rows"
        )
    return 1 / (negatives + 2), (positives + 1) / (positives + 2), positives / (negatives + positives)
