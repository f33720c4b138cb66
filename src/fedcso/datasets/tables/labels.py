"""Convert labels to 0 and 1, and choose the positive ones."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from fedcso.core.errors import FedcsoError, InvalidValue, shown
from fedcso.datasets.tables.columns import text, truth


def binary_labels(values: Sequence[str], column: str, positive: object = None) -> tuple[np.ndarray, list[str]]:
    """Return labels as 0 and 1, and a note if the positive label was chosen automatically.

    If `positive` is empty, 1, true and yes are positive, or else the rarer of two values.
    """
    counts = Counter(values)
    if len(counts) < 2:
        raise FedcsoError(
            f"column {column!r} holds only {shown(values[0])}; there must be positive and negative labels"
        )
    notes: list[str] = []
    if positive is not None:
        chosen = _chosen(positive, counts)
    elif meaning := truth(counts):
        chosen = {value for value, means in meaning.items() if means}
        if not 0 < len(chosen) < len(counts):
            raise FedcsoError(
                f"column {column!r} holds only {_some(counts)}; there must be positive and negative labels"
            )
    else:
        chosen = {_rarer(column, counts)}
        notes = [f"{column}: {min(chosen)!r} was taken for positive because it is rarer; --positive chooses otherwise"]
    return np.array([value in chosen for value in values], dtype=np.int64), notes


def labels_at_site(values: Sequence[str], column: str, positive: str = "") -> np.ndarray:
    """Return a site's labels as 0 and 1; no label is chosen automatically, because a site may have only one."""
    if positive:
        chosen = {part.strip() for part in positive.split(",")}
    elif meaning := truth(set(values)):
        chosen = {value for value, means in meaning.items() if means}
    else:
        raise FedcsoError(
            f"--positive is missing: column {column!r} holds {_some(Counter(values))}; choose the positive labels with "
            "--positive, separated by commas"
        )
    return np.array([value in chosen for value in values], dtype=np.int64)


def _rarer(column: str, counts: Counter[str]) -> str:
    """Return the rarer of two labels; raise if there are more, or if both are equally frequent."""
    (_, most), *_, (rarest, least) = counts.most_common()
    if len(counts) > 2 or most == least:
        why = "equally frequent" if len(counts) == 2 else "more than two"
        raise FedcsoError(
            f"column {column!r} has {len(counts)} values ({_some(counts)}), {why}; choose the positive ones with "
            "--positive, separated by commas"
        )
    return rarest


def _chosen(positive: object, counts: Counter[str]) -> set[str]:
    """Return the positive labels from a list separated by commas; a single label may contain commas."""
    name = str(text(positive))
    chosen = {name} if name in counts else {part.strip() for part in name.split(",")}
    if not chosen < counts.keys():
        raise InvalidValue("positive", positive, f"some, not all, of the labels there are: {_some(counts)}")
    return chosen


def _some(counts: Counter[str]) -> str:
    """List the most frequent values, up to five."""
    return ", ".join(shown(value) for value, _ in counts.most_common(5)) + (", …" if len(counts) > 5 else "")
