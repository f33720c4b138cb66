"""Sentences in plain words that are computed from numbers: which of two is ahead, and by how much."""

from collections.abc import Sequence
from enum import Enum

from fedcso.core.intervals import mean_and_interval


class Verdict(Enum):
    """How one result compares with another over seeds."""

    AHEAD = "ahead of"
    BEHIND = "behind"
    LEVEL = "not clearly different from"


def judge(values: Sequence[float], others: Sequence[float], higher_is_better: bool = True) -> Verdict:
    """Compare results seed by seed: the 95 % interval of the differences decides; one seed decides nothing."""
    sign = 1 if higher_is_better else -1
    mean, half = mean_and_interval([sign * (a - b) for a, b in zip(values, others, strict=True)])
    if not abs(mean) > half:  # also if there is no interval
        return Verdict.LEVEL
    return Verdict.AHEAD if mean > 0 else Verdict.BEHIND


def join(parts: Sequence[str]) -> str:
    """Return parts as an enumeration: “a, b and c”."""
    return " and ".join(filter(None, [", ".join(parts[:-1]), parts[-1] if parts else ""]))


def percent(value: float) -> str:
    """Return a share in percent, with two digits at least."""
    return f"{100 * value:.2g} %" if value < 0.1 else f"{100 * value:.0f} %"
