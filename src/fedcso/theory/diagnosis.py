"""Measure the bias and the noise of ∇F̂ at a point, from samples only, to see whether m is large enough.

M inner samples are drawn for each ξ, twice as many as the largest m to be examined, and split into blocks of m. Let A_m
be the mean of ∇F̂ over all blocks and all ξ. Then E A_m is the expectation of the estimator with m samples, and

    ∇F ≈ 2 A_M − A_{M/2}            removes a bias of order 1/m (Richardson extrapolation)
    bias(m) ≈ A_m − ∇F              for m = M/2 this is twice the MLMC difference ½[∇F̂(halves)] − ∇F̂(whole)

All use the SAME samples, so most of the noise cancels. No exact gradient is needed, so this works for any problem. The
outer samples are drawn in batches, and the intervals come from the differences between batches: squared norms are
estimated without bias, as means of products of DIFFERENT batches, and their intervals by the jackknife.

If f' has kinks, the bias falls like 1/√m, and this method finds about 0.6 of it.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from fedcso.core.costs import Costs
from fedcso.core.errors import require, require_count
from fedcso.core.estimator import split_into_blocks
from fedcso.core.intervals import student_t
from fedcso.core.oracle import Oracle
from fedcso.core.problem import Batch, Problem, split_steps
from fedcso.core.streams import DIAGNOSIS, stream
from fedcso.core.tree import Tree, leaves, map_leaves, to_device
from fedcso.estimators.halves import require_all_samples
from fedcso.estimators.plain import plain


class Magnitude(NamedTuple):
    """A norm, with its 95 % interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3g} ({self.low:.3g} to {self.high:.3g})"


class Size(NamedTuple):
    """Bias and noise of ∇F̂ with m inner samples."""

    m: int
    bias: Magnitude
    """‖E∇F̂ − ∇F‖."""
    noise: Magnitude
    """The standard deviation of ∇F̂ for a single ξ, over all coordinates together."""


@dataclass(frozen=True)
class Diagnosis:
    """Bias and noise for several inner batch sizes; a round averages `averaged` estimates, which reduces the noise."""

    gradient: Magnitude
    """‖∇F‖, extrapolated."""
    sizes: list[Size]
    averaged: int
    costs: Costs

    def noise(self, size: Size) -> float:
        """Return the noise of the mean of `averaged` estimates."""
        return size.noise.value / math.sqrt(self.averaged)

    def bias_dominates(self, size: Size) -> bool:
        """Return whether the whole interval of the bias is above the noise."""
        return size.bias.low > self.noise(size)

    def bias_misleads(self, size: Size) -> bool:
        """Return whether the interval of the bias excludes 0 and the bias is more than half of ‖∇F‖.

        A step with m samples decreases F by about ‖∇F‖ − bias(m) and costs m. With a bias of c/m, the decrease per
        sample is largest if the bias is half of ‖∇F‖: if it is more, m is too small; if it is less, m is too large.
        """
        return size.bias.low > 0 and size.bias.value > self.gradient.value / 2

    def needed(self, target: float | None = None) -> int:
        """Return the m that brings the bias below the noise, or below a target, if the bias falls like 1/m."""
        for size in self.sizes:
            if size.bias.value <= (target or self.noise(size)):
                return size.m
        largest = self.sizes[-1]
        return math.ceil(largest.m * largest.bias.value / (target or self.noise(largest)))

    def verdict(self, size: Size) -> str:
        """Say whether bias or noise dominates."""
        if self.bias_dominates(size):
            return "BIAS dominates: more inner samples will help, more rounds will not"
        if size.bias.high <= self.noise(size):
            return "noise dominates: m is large enough"
        return "neither dominates clearly"

    def advice(self, target: float | None = None) -> list[str]:
        """Say which m would be needed."""
        limit = f"{target:g}" if target else "the noise"
        lines = [
            f"‖∇F‖ is {self.gradient}; the noise is that of the mean of {self.averaged} estimates",
            f"it takes about m = {self.needed(target)} to bring the bias below {limit}",
        ]
        if self.gradient.value:
            best = self.needed(self.gradient.value / 2)
            lines.append(f"at this point each sample helps most with about m = {best}, where the bias is half of ‖∇F‖")
        return lines

    def __str__(self) -> str:
        each = [f"m = {s.m}: bias {s.bias}, noise {self.noise(s):.3g}: {self.verdict(s)}" for s in self.sizes]
        return "\n".join(each + self.advice())


def diagnose(
    problem: Problem,
    x: Tree,
    data: Sequence[Any],
    sizes: Sequence[int] = (1, 2, 4, 8, 16, 32),
    *,
    samples: int = 512,
    batches: int = 16,
    averaged: int | None = None,
    weights: Sequence[float] | None = None,
    seed: int = 0,
    round: int = 0,
) -> Diagnosis:
    """Measure bias and noise of ∇F̂ at x for inner batches of these sizes.

    `data` holds the data of each client; clients that can't train are skipped. The outer samples (`samples` in total)
    are divided among clients and `batches`. `averaged` is the number of estimates over which the noise is averaged,
    N·b·q in a round; the default is one for each client. `weights` are those of the clients, equal by default.
    """
    training = [n for n, one in enumerate(data) if problem.trains(one)]
    sizes = sorted(set(sizes))
    require_count("batches", batches, least=4)
    require_count("samples", samples)
    require("sizes", sizes, len, "at least one m")
    most = 2 * sizes[-1]
    for size in sizes:
        require_count("sizes", size)
        require("sizes", size, lambda m: most % m == 0, f"a divisor of {most}, twice the largest size")
    averaged = len(training) if averaged is None else averaged
    require_count("averaged", averaged)
    shares = torch.tensor([1.0 if weights is None else weights[n] for n in training], dtype=torch.float64)
    shares = shares / shares.sum()
    per_client = math.ceil(samples / batches / len(training))
    rng, oracle, costs = stream(seed, DIAGNOSIS, round), Oracle(problem, plain), Costs()
    drawn = []
    for _ in range(batches):
        some = [plain.draw(problem, data[n], rng, 1, per_client, most) for n in training]
        costs = sum((one.costs for one in some), costs)
        drawn.append([split_steps(to_device(one.batch, _device(x)), 1)[0] for one in some])
    require_all_samples(drawn[0][0].eta, most, axis=1)

    def gradients(m: int, first: bool = False) -> torch.Tensor:
        """Return ∇F̂ with m samples for every batch (batches, parameters), from all blocks or the first only."""
        rows = []
        for some in drawn:
            cut = [_first(batch, m) if first else split_into_blocks(batch, m) for batch in some]
            each = [float(w) * _vector(oracle.grad(x, batch)) for w, batch in zip(shares, cut, strict=True)]
            rows.append(torch.stack(each).sum(0))
        return torch.stack(rows)

    gradient = 2 * gradients(most) - gradients(sizes[-1])
    factor = per_client / float(shares.square().sum())  # variance of one estimate over variance of a batch's mean
    return Diagnosis(
        gradient=_norm_of_mean(gradient),
        sizes=[
            Size(m, _norm_of_mean(gradients(m) - gradient), _deviation(gradients(m, first=True), factor)) for m in sizes
        ],
        averaged=averaged,
        costs=costs + oracle.costs,
    )


def _device(x: Tree) -> str:
    return str(leaves(x)[0].device)


def _first(batch: Batch, m: int) -> Batch:
    return Batch(batch.xi, map_leaves(lambda leaf: leaf[:, :m], batch.eta))


def _vector(tree: Tree) -> torch.Tensor:
    return torch.cat([leaf.reshape(-1) for leaf in leaves(tree)])


def _norm_of_mean(rows: torch.Tensor) -> Magnitude:
    """Return the norm of the rows' mean; products of different rows only, so that noise does not inflate it."""
    return _jackknife(rows, lambda total, own, n: (total - own) / (n * (n - 1)))


def _deviation(rows: torch.Tensor, factor: float) -> Magnitude:
    """Return the standard deviation of the rows, over all coordinates together, times the root of `factor`."""
    return _jackknife(rows, lambda total, own, n: factor * (own - total / n) / (n - 1))


def _jackknife(rows: torch.Tensor, square: Callable[[Any, Any, int], Any]) -> Magnitude:
    """Return the root of `square`, with the jackknife's interval: how it changes when one row is left out.

    `square(total, own, n)` depends on the sum of all products of two of the n rows, and on the sum of the products of
    rows with themselves.
    """
    products = (rows @ rows.T).double().cpu()
    n, total, own = len(products), products.sum(), products.diagonal()
    without = square(total - 2 * products.sum(1) + own, own.sum() - own, n - 1)
    error = math.sqrt(float((without - without.mean()).square().sum()) * (n - 1) / n)
    middle, reach = float(square(total, own.sum(), n)), student_t(n - 1) * error
    value, low, high = (math.sqrt(max(0.0, number)) for number in (middle, middle - reach, middle + reach))
    return Magnitude(value, low, high)
