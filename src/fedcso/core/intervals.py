"""Confidence intervals of a mean over seeds."""

import math
from collections.abc import Sequence


def mean_and_interval(values: Sequence[float], level: float = 0.95) -> tuple[float, float]:
    """Return the mean over seeds and the half-width of its Student-t confidence interval (nan for fewer than two)."""
    n = len(values)
    mean = math.fsum(values) / n
    if n < 2:
        return mean, math.nan
    from scipy.special import stdtrit  # imported late: a site's client never needs scipy

    variance = math.fsum((v - mean) * (v - mean) for v in values) / (n - 1)
    return mean, float(stdtrit(n - 1, 0.5 + level / 2)) * math.sqrt(variance / n)
