"""Rare positives made from balanced data: some classes against the rest, then most of the positives left out."""

from collections.abc import Sequence

import numpy as np
import torch

from fedcso.core.errors import InvalidValue, is_number, require


def binarise(labels: torch.Tensor, positive: Sequence[int]) -> torch.Tensor:
    """1 where the label is one of `positive`, 0 elsewhere; for a whole data set, which must have each of them."""
    known = set(labels.tolist())
    if not positive or not set(positive) < known:
        raise InvalidValue("positive", positive, f"some, not all, of the labels there are: {sorted(known)}")
    return torch.isin(labels, torch.tensor(sorted(set(positive)), dtype=labels.dtype)).to(torch.int64)


def thin_positives(labels: torch.Tensor, removed: float, seed: int) -> torch.Tensor:
    """Indices of what is kept when this share of the positives, to the nearest whole number, is taken away.

    Which ones is decided by the data seed; what is kept stays in its order. Some positives must be left, if there
    were any.
    """
    require("removed", removed, lambda share: is_number(share) and 0 <= share < 1, "in [0, 1)")
    others = sorted(set(labels.tolist()) - {0, 1})
    if others:
        raise InvalidValue("labels", others[0], "0 or 1")
    positives = np.flatnonzero(labels.numpy() == 1)
    number = round(removed * len(positives))
    if number and number == len(positives):
        raise InvalidValue("removed", removed, f"small enough to leave one of the {number} positives")
    gone = np.random.default_rng((seed, 2)).permutation(positives)[:number]
    keep = np.ones(len(labels), dtype=bool)
    keep[gone] = False
    return torch.from_numpy(np.flatnonzero(keep))
