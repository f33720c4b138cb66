"""Fixed-point numbers: trees of floats as whole numbers whose sum over all sites fits into 64 bits.

A leaf with the range R is written in multiples of a step s, the smallest power of two with

    n R / s ≤ 2^59        for n sites

so the sum of n sites can't reach the modulus 2^64, and four bits are left in which a sum of anything else shows. A site
writes round(w v / s) for each number v, where w ≤ 1 is its weight as a fraction of the largest weight; the mean is the
sum times s / Σ w, off by at most n s / (2 Σ w). A number outside the range raises `Overflow`, and nothing is sent.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from fedcso.core.errors import FedcsoError, InvalidValue
from fedcso.core.tree import Tree, named_leaves, unflatten_like
from fedcso.federation.errors import Tellable

SUM_BITS = 59
"""The absolute value of a sum is at most 2^59; 63 bits would fit."""

SLACK = 1e-9
"""How much larger a sum may be than the ranges say, relatively: numbers of 64 bits are rounded in float64."""

DEFAULT_RANGE = "65536"


class Overflow(Tellable):
    """A number of an update is outside its range."""


class ImpossibleSum(FedcsoError):
    """A sum that no updates within the ranges have."""


@dataclass(frozen=True)
class Ranges:
    """The largest absolute value of the numbers of each leaf: `65536`, or by path, `65536, u = 1e9, x.bias = 10`."""

    default: float
    by_path: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> "Ranges":
        """Read ranges; raise `InvalidValue` if the text has another form."""
        default, by_path = float(DEFAULT_RANGE), {}
        for entry in str(text).split(","):
            path, equals, number = entry.rpartition("=")
            try:
                value = float(number)
            except ValueError:
                value = math.nan
            if not 0 < value < math.inf or (equals and not path.strip()) or "=" in path:
                raise InvalidValue("secure_range", text, "a number, or numbers by part, as in 65536, u = 1e9")
            if equals:
                by_path[path.strip()] = value
            else:
                default = value
        return cls(default, by_path)

    def of(self, path: str) -> float:
        """Return the range of a leaf: that of the longest path that leads to it."""
        leading = [known for known in self.by_path if path == known or path.startswith(f"{known}.")]
        return self.by_path[max(leading, key=len)] if leading else self.default


def exponent(limit: float, sites: int) -> int:
    """Return e for the step s = 2^e of a leaf with this range."""
    power = math.frexp(limit * sites)[1] - SUM_BITS - 1  # limit · sites ≥ 2^(power + 58), so no smaller step will do
    while math.ldexp(limit, -power) * sites > 2**SUM_BITS:
        power += 1
    return power


def encode(tree: Tree, ranges: Ranges, sites: int, weight: float = 1.0) -> Tree:
    """Return a tree of whole numbers (int64); the first part of a leaf's path does not count for its range."""
    return unflatten_like(tree, [_encode(path, leaf, ranges, sites, weight) for path, leaf in named_leaves(tree)])


def _encode(path: str, leaf: torch.Tensor, ranges: Ranges, sites: int, weight: float) -> torch.Tensor:
    name = _below(path)
    values, limit = leaf.detach().cpu().to(torch.float64), ranges.of(name)
    if not bool((values.abs() <= limit).all()):  # also if one is not a number
        raise Overflow(f"a number of {name} is outside the range ±{limit:g}: set a larger secure_range for {name}")
    return torch.round(values * weight * math.ldexp(1.0, -exponent(limit, sites))).to(torch.int64)


def decode(total: Tree, dtypes: Sequence[torch.dtype], ranges: Ranges, sites: int, weights: float, count: int) -> Tree:
    """Return the weighted mean, given the sum of trees of whole numbers; raise `ImpossibleSum` if it can't be one.

    Args:
        total: the sum
        dtypes: the types of the leaves, in order
        ranges: the ranges with which the trees were encoded
        sites: the number of sites for which they were encoded
        weights: the sum of the weights of the sites in the sum
        count: the number of sites in the sum
    """
    means = []
    for (path, leaf), dtype in zip(named_leaves(total), dtypes, strict=True):
        limit = ranges.of(_below(path))
        power = exponent(limit, sites)
        largest = int(math.ldexp(limit, -power) * weights * (1 + SLACK)) + count
        if bool(((leaf > largest) | (leaf < -largest)).any()):
            raise ImpossibleSum(f"the sum of {_below(path)} is outside what updates within the ranges can give")
        means.append((leaf.to(torch.float64) * math.ldexp(1.0, power) / weights).to(dtype))
    return unflatten_like(total, means)


def flatten(tree: Tree) -> np.ndarray:
    """Return the numbers of a tree of int64 as one vector modulo 2^64."""
    parts = [leaf.reshape(-1).numpy().view(np.uint64) for _, leaf in named_leaves(tree)]
    return np.concatenate([np.empty(0, np.uint64), *parts])


def unflatten(tree: Tree, vector: np.ndarray) -> Tree:
    """Return a vector in the form of a tree."""
    sizes = [leaf.numel() for _, leaf in named_leaves(tree)]
    parts = np.split(vector.view(np.int64), np.cumsum(sizes)[:-1]) if sizes else []
    shaped = [torch.from_numpy(p.copy()).reshape(t.shape) for p, (_, t) in zip(parts, named_leaves(tree), strict=True)]
    return unflatten_like(tree, shaped)


def _below(path: str) -> str:
    return path.partition(".")[2]
