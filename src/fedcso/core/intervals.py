"""Confidence intervals of a mean over seeds."""

import math
from collections.abc import Sequence


def mean_and_interval(values: Sequence[float], level: float = 0.95) -> tuple[float, float]:
    """Return the mean over seeds and the half-width of its Student-t confidence interval (nan for fewer than two)."""
    n = len(values)
    mean = math.fsum(values) / n
    if n < 2:
        return mean, math.nan
    variance = math.fsum((v - mean) * (v - mean) for v in values) / (n - 1)
    return mean, student_t(n - 1, level) * math.sqrt(variance / n)


def student_t(freedom: int, level: float = 0.95) -> float:
    """Return how many standard errors the half-width of a Student-t interval with these degrees of freedom is."""
    from scipy.special import stdtrit  # imported late: a site's client never needs scipy

    return float(stdtrit(freedom, 0.5 + level / 2))
