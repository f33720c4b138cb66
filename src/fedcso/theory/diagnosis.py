"""How biased and how noisy ∇F̂ is at a point, measured from samples alone: is m large enough?

M inner samples are drawn for each ξ, twice as many as the largest m in question, and cut into blocks of m. With A_m the
mean of ∇F̂ over all blocks and all ξ, E A_m is the mean of the estimator with m samples, and

    ∇F ≈ 2 A_M − A_{M/2}            what is left of a bias of order 1/m is subtracted (Richardson)
    bias(m) ≈ A_m − ∇F              for m = M/2 this is twice the MLMC difference ½[∇F̂(halves)] − ∇F̂(whole)

on the SAME samples, so that most noise cancels. Works on any problem, for no exact gradient is needed. The outer
samples come in batches, and how much these disagree gives the intervals: squared norms are estimated without their
own bias as means of products of DIFFERENT batches, their intervals by the jackknife.

Where f' has kinks the bias falls like 1/√m, and what is found here is about 0.6 of it.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from scipy import stats

from fedcso.core.costs import Costs
from fedcso.core.errors import require, require_count
from fedcso.core.estimator import blocks
from fedcso.core.oracle import Oracle
from fedcso.core.problem import Batch, Problem, steps_of
from fedcso.core.streams import DIAGNOSIS, stream
from fedcso.core.tree import Tree, leaves, map_leaves, to_device
from fedcso.estimators.halves import require_every
from fedcso.estimators.plain import plain


class Magnitude(NamedTuple):
    """A length, and its 95 % interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3g} ({self.low:.3g} to {self.high:.3g})"


class Size(NamedTuple):
    """What an inner batch of m samples means."""

    m: int
    bias: Magnitude
    """‖E∇F̂ − ∇F‖."""
    noise: Magnitude
    """The standard deviation of ∇F̂ for a single ξ, all coordinates together."""


@dataclass(frozen=True)
class Diagnosis:
    """The bias against the noise that is left when `averaged` estimates are averaged, as in a round."""

    gradient: Magnitude
    """‖∇F‖, extrapolated."""
    sizes: list[Size]
    averaged: int
    costs: Costs

    def noise(self, size: Size) -> float:
        """What is left of the noise in the mean of `averaged` estimates."""
        return size.noise.value / math.sqrt(self.averaged)

    def bias_dominates(self, size: Size) -> bool:
        """True if the bias is above the noise, with its whole interval."""
        return size.bias.low > self.noise(size)

    def bias_misleads(self, size: Size) -> bool:
        """True if there is a bias for certain, and it is more than half as long as ∇F.

        A step with m samples goes down by about ‖∇F‖ − bias(m) for the price of m. With a bias of c/m that is most for
        the price where the bias is half of ‖∇F‖: with more of it m is too small, with less too large.
        """
        return size.bias.low > 0 and size.bias.value > self.gradient.value / 2

    def needed(self, target: float | None = None) -> int:
        """The m that brings the bias below the noise (or below a target), as it falls like 1/m."""
        for size in self.sizes:
            if size.bias.value <= (target or self.noise(size)):
                return size.m
        largest = self.sizes[-1]
        return math.ceil(largest.m * largest.bias.value / (target or self.noise(largest)))

    def verdict(self, size: Size) -> str:
        """Whether bias or noise dominates, in words."""
        if self.bias_dominates(size):
            return "BIAS dominates: more rounds will not help, more inner samples will"
        if size.bias.high <= self.noise(size):
            return "noise dominates: m is large enough"
        return "neither dominates clearly"

    def advice(self, target: float | None = None) -> list[str]:
        """Which m it would take."""
        limit = f"{target:g}" if target else "the noise"
        lines = [
            f"‖∇F‖ is {self.gradient}; noise is that of the mean of {self.averaged} estimates",
            f"it takes about m = {self.needed(target)} to bring the bias below {limit}",
        ]
        if self.gradient.value:
            best = self.needed(self.gradient.value / 2)
            lines.append(f"at this point about m = {best} makes most of each sample: the bias is then half of ‖∇F‖")
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
    """Bias and noise of ∇F̂ at x for inner batches of these sizes.

    `data` are the clients' (those that train); `samples` outer samples are spread over them and over `batches`.
    `averaged` is how many estimates are averaged before noise counts: N·b·q in a round; one for each client if not
    given. Weights are the clients', all alike if not given.
    """
    able = [n for n, one in enumerate(data) if problem.trains(one)]
    sizes = sorted(set(sizes))
    require_count("batches", batches, least=4)
    require_count("samples", samples)
    require("sizes", sizes, len, "at least one m")
    for size in sizes:
        require_count("sizes", size)
        require("sizes", size, lambda m: 2 * sizes[-1] % m == 0, f"a divisor of {2 * sizes[-1]}, twice the largest")
    averaged = len(able) if averaged is None else averaged
    require_count("averaged", averaged)
    share = torch.tensor([1.0 if weights is None else weights[n] for n in able], dtype=torch.float64)
    share = share / share.sum()
    top, per = 2 * sizes[-1], math.ceil(samples / batches / len(able))
    rng, oracle, costs = stream(seed, DIAGNOSIS, round), Oracle(problem, plain), Costs()
    drawn = []
    for _ in range(batches):
        some = [plain.draw(problem, data[n], rng, 1, per, top) for n in able]
        costs = sum((one.costs for one in some), costs)
        drawn.append([steps_of(to_device(one.batch, _device(x)), 1)[0] for one in some])
    require_every(drawn[0][0].eta, top, axis=1)

    def gradients(m: int, first: bool = False) -> torch.Tensor:
        """∇F̂ with m samples in every batch (batches, parameters): mean over clients and blocks, or the first block."""
        rows = []
        for some in drawn:
            cut = [_first(batch, m) if first else blocks(batch, m) for batch in some]
            each = [float(w) * _vector(oracle.grad(x, batch)) for w, batch in zip(share, cut, strict=True)]
            rows.append(torch.stack(each).sum(0))
        return torch.stack(rows)

    truth = 2 * gradients(top) - gradients(sizes[-1])
    spread = per / float(share.square().sum())  # a batch's mean varies less than one estimate by this factor
    return Diagnosis(
        gradient=_length(truth),
        sizes=[Size(m, _length(gradients(m) - truth), _deviation(gradients(m, first=True), spread)) for m in sizes],
        averaged=averaged,
        costs=costs + oracle.costs,
    )


def _device(x: Tree) -> str:
    return str(leaves(x)[0].device)


def _first(batch: Batch, m: int) -> Batch:
    return Batch(batch.xi, map_leaves(lambda leaf: leaf[:, :m], batch.eta))


def _vector(tree: Tree) -> torch.Tensor:
    return torch.cat([leaf.reshape(-1) for leaf in leaves(tree)])


def _length(rows: torch.Tensor) -> Magnitude:
    """The length of the rows' mean, from products of different rows: noise has none with itself."""
    return _jackknifed(rows, lambda total, own, n: (total - own) / (n * (n - 1)))


def _deviation(rows: torch.Tensor, factor: float) -> Magnitude:
    """The standard deviation of the rows, all coordinates together, times the root of a factor."""
    return _jackknifed(rows, lambda total, own, n: factor * (own - total / n) / (n - 1))


def _jackknifed(rows: torch.Tensor, square: Callable[[Any, Any, int], Any]) -> Magnitude:
    """The root of a square that is a function of the sum of all products of two rows, and of those with themselves.

    Its interval comes from how it changes when each of the rows is left out.
    """
    products = (rows @ rows.T).double().cpu()
    n, total, own = len(products), products.sum(), products.diagonal()
    without = square(total - 2 * products.sum(1) + own, own.sum() - own, n - 1)
    error = math.sqrt(float((without - without.mean()).square().sum()) * (n - 1) / n)
    middle, reach = float(square(total, own.sum(), n)), float(stats.t.ppf(0.975, n - 1)) * error
    value, low, high = (math.sqrt(max(0.0, number)) for number in (middle, middle - reach, middle + reach))
    return Magnitude(value, low, high)
