"""Counts of held-out rows by score: what a site sends of them, and which of it the coordinator accepts.

Everybody knows the bins (`fixed_bins`). A site sends, for its validation and for its test rows, the numbers of the bins
that hold rows and how many negatives and positives are in each. Rows are counted in groups of at least the smallest
number that may leave the site. Of a part with fewer rows, or fewer of either label, it sends no counts.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from fedcso.core.judge import Judge
from fedcso.core.tree import Tree
from fedcso.federation.sovereignty.withholding import grouped
from fedcso.federation.wire import Unreadable
from fedcso.reports.held import Held
from fedcso.reports.score_counts import ScoreCounts, fixed_bins

PARTS = ("validation", "test")
NUMBERS = ("bins", "negatives", "positives")
"""What is sent of a part: three lists of whole numbers, with an entry for each bin that holds rows."""

MOST_ROWS = 10_000_000
"""The largest number of rows that a site's part may have: more would be a lie, and too much for the coordinator."""

Counts = dict[str, ScoreCounts]
"""A site's counts by part, without the parts that have too few rows."""


@dataclass(frozen=True)
class SiteCounts:
    """What a site has answered."""

    site: str
    counts: Counts = field(default_factory=dict)
    bytes_up: int = 0
    why_not: str = ""
    """Why the site has no counts at all; empty if it answered."""

    def rows(self, part: str) -> tuple[int, int] | None:
        """Return the number of rows and of positives of a part; None if it was not counted."""
        found = self.counts.get(part)
        return None if found is None else (int(found.rows.sum()), int(found.positives.sum()))


def count_parts(judge: Judge, x: Tree, parts: Mapping[str, Any], smallest: int) -> tuple[dict[str, Any], Tree]:
    """Return what a site answers: the parts with too few rows, and counts of the others in groups of `smallest`."""
    too_few, sent = [], {}
    for part, data in parts.items():
        counts = Held.of(judge, x, data).counts()
        by_label = [int(numbers.sum()) for numbers in (counts.negatives, counts.positives)]
        if sum(by_label) < smallest or any(0 < number < smallest for number in by_label):
            too_few.append(part)
        else:
            sent[part] = _encode(counts, smallest)
    return {"too_few": too_few}, sent


def _encode(counts: ScoreCounts, smallest: int) -> dict[str, torch.Tensor]:
    negatives, positives = (grouped(numbers, smallest) for numbers in (counts.negatives, counts.positives))
    places = np.flatnonzero(negatives + positives)
    values = (places, negatives[places], positives[places])
    return {name: torch.from_numpy(value.astype(np.int64)) for name, value in zip(NUMBERS, values, strict=True)}


def read_counts(said: Mapping[str, Any], tree: Tree, train_rows: int | None) -> Counts:
    """Return the counts in a site's answer; raise `Unreadable` if they are malformed or impossible.

    A site has reported how many rows it trains with. Tables are split so that no other part has more.
    """
    try:
        too_few, sent = list(said["too_few"]), dict(tree)
        if sorted([*too_few, *sent]) != sorted(PARTS):
            raise Unreadable("its counts are not those of validation and test rows")
        numbers = {part: [dict(sent[part])[name] for name in NUMBERS] for part in sent}
    except (LookupError, TypeError, ValueError) as error:
        raise Unreadable(f"its counts are incomplete ({type(error).__name__})") from error
    most = MOST_ROWS if train_rows is None else min(train_rows, MOST_ROWS)
    return {part: _decode(part, values, most) for part, values in numbers.items()}


def _decode(part: str, values: list[Any], most: int) -> ScoreCounts:
    bins = fixed_bins()
    form = isinstance(values[0], torch.Tensor) and values[0].shape
    if not all(
        isinstance(v, torch.Tensor) and v.dtype == torch.int64 and v.ndim == 1 and v.shape == form for v in values
    ):
        raise Unreadable(f"its counts of {part} rows are not three equally long lists of whole numbers")
    places, negatives, positives = (value.numpy() for value in values)
    there = ((places >= 0) & (places < len(bins.centres))).all()
    if not there or not (np.diff(places) > 0).all():
        raise Unreadable(f"its counts of {part} rows are for bins that don't exist, or for a bin twice")
    if not all(((count >= 0) & (count <= most)).all() for count in (negatives, positives)):
        raise Unreadable(f"its counts of {part} rows are negative, or more than the {most} possible rows")
    rows = negatives + positives
    if not (rows > 0).all() or rows.sum() > most:
        raise Unreadable(f"its counts of {part} rows are of empty bins, or more than the {most} possible rows")
    whole = np.zeros((2, len(bins.centres)), dtype=np.int64)
    whole[:, places] = negatives, positives
    return ScoreCounts(bins, *whole)
