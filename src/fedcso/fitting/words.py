"""The result of a fit in plain words, computed from its numbers."""

import math

from fedcso.fitting.result import Contender, Decision
from fedcso.reports.bootstrap import Measured

FEW_POSITIVES = 50
"""With fewer test positives, bootstrap intervals are too narrow (see `fedcso.reports.bootstrap`)."""


def summary(decision: Decision) -> list[str]:
    """Return the sentences that a reader with little time should read."""
    return [_training(decision), *_alerts(decision), _probabilities(decision), _ranking(decision), *_others(decision)]


def value_and_interval(measured: Measured) -> str:
    """Return a result with its interval, or why it has none, in three digits."""
    value = "undefined" if math.isnan(measured.value) else f"{measured.value:.3f}"
    said = f"{value} ({measured.why_no_interval or f'{measured.low:.3f} to {measured.high:.3f}'})"
    return said.replace("-", "−")


def count(number: int, one: str, several: str = "") -> str:
    """Return a number with its noun: 1 row, 2 rows."""
    return f"{number:,} {one if number == 1 else several or one + 's'}"


def _training(decision: Decision) -> str:
    sites, train = len(decision.data), decision.whole("train")
    where = f"at {sites} sites without moving their rows" if sites > 1 else "at one site"
    return f"The model was trained {where}: {count(train.rows, 'row')}, {train.positives:,} of them positive."


def _alerts(decision: Decision) -> list[str]:
    """Return what the first threshold does, and which wishes are not fulfilled."""
    made, test = decision.decisions, decision.whole("test")
    data = f"{count(test.rows, 'test row')} with {count(test.positives, 'positive')}"
    said = []
    if made.thresholds:
        first = made.thresholds[0]
        said.append(
            f"On {data}, which had no part in training or choosing, the threshold for {first.threshold.wanted} does "
            f"this: {first.test.describe(made.prevalence)}."
        )
    return said + [f"{sentence[0].upper()}{sentence[1:]}." for sentence in made.missed]


def _ranking(decision: Decision) -> str:
    whole = decision.decisions.whole
    chance = whole.positives / whole.rows
    said = f"Its average precision is {value_and_interval(whole.average_precision)}, where chance is {chance:.3f}."
    if whole.positives < FEW_POSITIVES:
        said += f" With {count(whole.positives, 'positive')} such intervals tend to be too narrow."
    return said


def _probabilities(decision: Decision) -> str:
    made = decision.decisions
    return (
        f"Its probabilities are calibrated ({made.calibration.method}): on the test data they differ from the observed "
        f"shares of positives by {100 * made.calibration_error:.2g} percentage points, in the mean over rows."
    )


def _others(decision: Decision) -> list[str]:
    """Compare with the best of the others, and with the best that needs no data in one place."""
    rest = [one for one in decision.contenders if one.difference is not None]
    groups = [[one for one in rest if one.needs_pooled_data == pooled] for pooled in (False, True)]
    return [_compared(max(group, key=lambda one: one.average_precision.value)) for group in groups if group]


def _compared(other: Contender) -> str:
    difference = other.difference
    assert difference is not None
    kind = "that need the data in one place" if other.needs_pooled_data else "that leave the data at the sites"
    said = f"Of the other methods {kind}, the best is “{other.name}” with {value_and_interval(other.average_precision)}"
    by = f"{abs(difference.value):.3f}"
    if difference.why_no_interval:
        return f"{said}; whether the difference of {by} is chance can't be told ({difference.why_no_interval})."
    interval = f"{difference.low:+.3f} to {difference.high:+.3f}".replace("-", "−")
    if difference.low <= 0 <= difference.high:
        return f"{said}; the test data can't tell which of the two is better (difference {interval})."
    word = "better" if difference.value > 0 else "worse"
    return f"{said}; the chosen model is {word} by {by} ({interval})."
