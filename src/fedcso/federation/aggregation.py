"""Combine the sites' updates: the mean, or robust alternatives that tolerate a few bad sites.

With Δ_n = (what site n sent) − (what it was sent), over all shared quantities together:

    clipping            Δ_n ← Δ_n min(1, C / ‖Δ_n‖)
    mean                Σ_n w_n Δ_n
    median              of each coordinate, over the sites
    trimmed mean        of each coordinate, without the smallest and the largest share of the values
    noise (privacy)     mean + N(0, (z C / n)² I) for n sites that count alike: the Gaussian mechanism

Reference: Yin, Chen, Ramchandran, Bartlett, Byzantine-Robust Distributed Learning, ICML 2018; McMahan, Ramage,
Talwar, Zhang, Learning Differentially Private Recurrent Language Models, ICLR 2018.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from fedcso.core.tree import Tree, average, map_leaves, named_leaves, unflatten_like

Rule = Callable[[Sequence[Tree], Sequence[float], float], Tree]


def _mean(sent: Sequence[Tree], weights: Sequence[float], trim: float) -> Tree:
    return average(sent, weights)


def _median(sent: Sequence[Tree], weights: Sequence[float], trim: float) -> Tree:
    """Return the median; the mean of the two middle values if their number is even."""
    return _trimmed_mean(sent, weights, trim=(len(sent) - 1) // 2 / len(sent))


def _trimmed_mean(sent: Sequence[Tree], weights: Sequence[float], trim: float) -> Tree:
    """Return the trimmed mean; sites have equal weights, since any few of them may be bad."""
    cut = int(trim * len(sent) + 1e-9)

    def combined(*parts: torch.Tensor) -> torch.Tensor:
        ordered = torch.stack([part.to(torch.float64) for part in parts]).sort(0).values
        return ordered[cut : len(parts) - cut].mean(0).to(parts[0].dtype)

    return map_leaves(combined, *sent)


AGGREGATES: dict[str, Rule] = {"mean": _mean, "median": _median, "trimmed_mean": _trimmed_mean}
"""Robust combinations by name."""


@dataclass(frozen=True)
class Aggregation:
    """Clip, combine and add noise; by default only the mean."""

    aggregate: str = "mean"
    trim: float = 0.2
    clip_update: float = 0.0
    """C, the largest norm of an update; 0 for no clipping."""
    noise: float = 0.0
    """z, the noise in units of what clipping lets one site contribute."""

    def __call__(
        self, before: dict[str, Tree], sent: Sequence[dict[str, Tree]], weights: Sequence[float]
    ) -> dict[str, Tree]:
        """Return the function that combines messages (`fedcso.engines.server.Combine`)."""
        if self.clip_update:
            sent = [clipped(before, one, self.clip_update) for one in sent]
        combined: dict[str, Tree] = AGGREGATES[self.aggregate](sent, weights, self.trim)
        if self.noise:
            combined = with_noise(combined, self.deviation(len(sent)))
        return combined

    def deviation(self, sites: int) -> float:
        """Return the standard deviation of the noise in the mean over this many sites."""
        return self.noise * self.clip_update / sites if self.noise else 0.0


def update_norm(before: Tree, sent: Tree) -> float:
    """Return ‖Δ‖ in float64; parts that are still empty at the server count from zero."""
    return float(sum(float(part.square().sum()) for part in _changes(before, sent)) ** 0.5)


def clipped(before: Tree, sent: Tree, longest: float) -> Tree:
    """Clip an update: move it towards its starting point until ‖Δ‖ ≤ longest."""
    length = update_norm(before, sent)
    if length <= longest:
        return sent
    changes = _changes(before, sent)
    new = [
        (leaf.to(torch.float64) - change * (1 - longest / length)).to(leaf.dtype)
        for (_, leaf), change in zip(named_leaves(sent), changes, strict=True)
    ]
    return unflatten_like(sent, new)


def _changes(before: Tree, sent: Tree) -> list[torch.Tensor]:
    had = dict(named_leaves(before))
    return [
        leaf.to(torch.float64) - (had[path].to(torch.float64) if path in had else 0)
        for path, leaf in named_leaves(sent)
    ]


def with_noise(tree: Tree, deviation: float) -> Tree:
    """Return Gaussian noise from the system's generator, because the sites know the run's seed."""
    secret = torch.Generator().manual_seed(int.from_bytes(os.urandom(8), "big") >> 1)

    def noisy(leaf: torch.Tensor) -> torch.Tensor:
        drawn = torch.randn(leaf.shape, generator=secret, dtype=torch.float64)
        return (leaf.to(torch.float64) + deviation * drawn.to(leaf.device)).to(leaf.dtype)

    return map_leaves(noisy, tree)
