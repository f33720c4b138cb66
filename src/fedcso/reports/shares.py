"""Shares with Wilson's interval, which stays inside [0, 1] and holds for small counts.

With p = hits / trials, n = trials and z the normal quantile (1.96 for 95 %) its limits are

    ( p + z²/2n ± z √( p(1 − p)/n + z²/4n² ) ) / ( 1 + z²/n )

Reference: Wilson, Probable Inference, the Law of Succession, and Statistical Inference, JASA 1927.
"""

import math
from statistics import NormalDist
from typing import NamedTuple

from fedcso.core.errors import require


class Share(NamedTuple):
    """A share and the limits of its interval; without trials the share is nan and the limits are 0 and 1."""

    value: float
    low: float
    high: float

    def with_odds_times(self, factor: float) -> "Share":
        """Multiply the odds p/(1 − p) of the share and of its limits."""
        return Share(*(factor * p / (1 - p + factor * p) for p in self))


def require_share(field: str, value: float) -> None:
    """Raise unless the value lies strictly between 0 and 1."""
    require(field, value, lambda share: 0 < share < 1, "above 0 and below 1")


def wilson(hits: int, trials: int, level: float = 0.95) -> Share:
    """Return hits / trials with Wilson's interval at a confidence level."""
    if not trials:
        return Share(math.nan, 0.0, 1.0)
    z = NormalDist().inv_cdf(0.5 + level / 2)
    p, shrink = hits / trials, 1 + z * z / trials
    middle = (p + z * z / (2 * trials)) / shrink
    half = z * math.sqrt(p * (1 - p) / trials + (z / (2 * trials)) ** 2) / shrink
    # At the ends the limits are 0 and 1 exactly; elsewhere rounding must not push them past p.
    return Share(p, 0.0 if hits == 0 else min(middle - half, p), 1.0 if hits == trials else max(middle + half, p))
