"""Make positives rare in balanced data: label some classes positive, then remove most of the positives."""

from collections.abc import Sequence

import numpy as np
import torch

from fedcso.core.errors import InvalidValue, is_number, require


def binarise(labels: torch.Tensor, positive: Sequence[int]) -> torch.Tensor:
    """Return 1 where the label is one of `positive`, else 0; these must be some, but not all, of the labels."""
    known = set(labels.tolist())
    if not positive or not set(positive) < known:
        raise InvalidValue("positive", positive, f"some, not all, of the labels there are: {sorted(known)}")
    return torch.isin(labels, torch.tensor(sorted(set(positive)), dtype=labels.dtype)).to(torch.int64)


def thin_positives(labels: torch.Tensor, removed: float, seed: int) -> torch.Tensor:
    """Return the indices that remain, in order, after removing this share of the positives, rounded to a whole number.

    The data seed decides which positives are removed. Raise `InvalidValue` if none would be left.
    """
    require("removed", removed, lambda share: is_number(share) and 0 <= share < 1, "in [0, 1)")
    others = sorted(set(labels.tolist()) - {0, 1})
    if others:
        raise InvalidValue("labels", others[0], "0 or 1")
    positives = np.flatnonzero(labels.numpy() == 1)
    number = round(removed * len(positives))
    if number and number == len(positives):
        raise InvalidValue("removed", removed, f"smaller, so that at least one of the {number} positives is left")
    dropped = np.random.default_rng((seed, 2)).permutation(positives)[:number]
    keep = np.ones(len(labels), dtype=bool)
    keep[dropped] = False
    return torch.from_numpy(np.flatnonzero(keep))
