"""Parts of very large data that are enough: validation rows that choose, and training rows of trees.

Rows are taken evenly spaced, in the order in which the sites hold them, so every site is represented by its size.
"""

import math
from collections.abc import Sequence

import torch

from fedcso.datasets.examples import Examples, pool_examples

ENOUGH_ROWS, ENOUGH_POSITIVES = 20_000, 500
"""More validation rows than both of these do not choose noticeably better, but take as long as training."""


def choosing_share(validation: Sequence[Examples]) -> float:
    """Return the share of the sites' validation rows by which settings and iterates are chosen."""
    counts = [_count(part) for part in validation]
    rows, positives = sum(rows for rows, _ in counts), sum(positives for _, positives in counts)
    return min(1.0, max(ENOUGH_ROWS / max(rows, 1), ENOUGH_POSITIVES / max(positives, 1)))


def choosing_rows(validation: Sequence[Examples]) -> Examples:
    """Return these rows of all sites together; the share of positives is that of all validation rows."""
    share = choosing_share(validation)
    if share == 1:
        return pool_examples(validation)
    return pool_examples([_thin(part, *(math.ceil(share * count) for count in _by_label(part))) for part in validation])


def at_most(examples: Examples, rows: int) -> Examples:
    """Return at most so many examples: all positives if these are no more than half of them, else half of each kind."""
    negatives, positives = _by_label(examples)
    if negatives + positives <= rows:
        return examples
    kept = min(positives, max(rows // 2, rows - negatives))
    return _thin(examples, rows - kept, kept)


def _thin(examples: Examples, negatives: int, positives: int) -> Examples:
    """Return some of the examples of each kind, in their order."""
    kept = [
        _evenly((examples.labels == label).nonzero().squeeze(1), number)
        for label, number in ((0, negatives), (1, positives))
    ]
    return examples.select(torch.cat(kept).sort().values)


def _evenly(places: torch.Tensor, number: int) -> torch.Tensor:
    """Return so many of the places, evenly spaced."""
    return places[torch.arange(number) * len(places) // max(number, 1)]


def _by_label(examples: Examples) -> tuple[int, int]:
    """Return the numbers of negatives and positives."""
    rows, positives = _count(examples)
    return rows - positives, positives


def _count(examples: Examples) -> tuple[int, int]:
    """Return the numbers of rows and of positives."""
    return len(examples.labels), int(examples.labels.sum())
