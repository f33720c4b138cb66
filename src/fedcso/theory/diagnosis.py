"""Measure the bias and the noise of ∇F̂ at a point, from samples only, to see whether m is large enough.

M inner samples are drawn for each ξ, twice as many as the largest m to be examined, and split into blocks of m. Let A_m
be the mean of ∇F̂ over all blocks and all ξ. Then E A_m is the expectation of the estimator with m samples, and

    ∇F ≈ 2 A_M − A_{M/2}            removes a bias of order 1/m (Richardson extrapolation)
    bias(m) ≈ A_m − ∇F              for m = M/2 this is twice the MLMC difference ½[∇F̂(halves)] − ∇F̂(whole)

All use the SAME samples, so most of the noise cancels. No exact gradient is needed, so this works for any problem. The
outer samples are drawn in batches, and the intervals come from the differences between batches: squared norms are
estimated without bias, as means of products of DIFFERENT batches, and their intervals by the jackknife.

If f' has kinks, the bias falls like 1/√m, and this method finds about 0.6 of it.

Bias and noise of other estimators are measured in the same way, with blocks of the same samples and the same ∇F.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from fedcso.core.costs import Costs
from fedcso.core.errors import require, require_count
from fedcso.core.estimator import Estimator, split_into_blocks
from fedcso.core.intervals import student_t
from fedcso.core.oracle import Oracle
from fedcso.core.problem import Batch, Problem, split_steps
from fedcso.core.streams import DIAGNOSIS, stream
from fedcso.core.tree import Tree, leaves, map_leaves, to_device
from fedcso.estimators.halves import require_all_samples
from fedcso.estimators.plain import plain
from fedcso.theory.verdict import Diagnosis, Magnitude, Size


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
    estimator: Estimator = plain,
) -> Diagnosis:
    """Measure bias and noise of ∇F̂ at x for inner batches of these sizes.

    `data` holds the data of each client; clients that can't train are skipped. The outer samples (`samples` in total)
    are divided among clients and `batches`. `averaged` is the number of estimates over which the noise is averaged,
    N·b·q in a round; the default is one for each client. `weights` are those of the clients, equal by default.
    `estimator` is one that draws m inner samples for every ξ; diagnoses of several with the same seed have the same
    samples.
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
        estimator.check(size)
    averaged = len(training) if averaged is None else averaged
    require_count("averaged", averaged)
    shares = torch.tensor([1.0 if weights is None else weights[n] for n in training], dtype=torch.float64)
    shares = shares / shares.sum()
    per_client = math.ceil(samples / batches / len(training))
    rng, reference, examined = stream(seed, DIAGNOSIS, round), Oracle(problem, plain), Oracle(problem, estimator)
    costs = Costs()
    drawn = []
    for _ in range(batches):
        some = [plain.draw(problem, data[n], rng, 1, per_client, most) for n in training]
        costs = sum((one.costs for one in some), costs)
        drawn.append([split_steps(to_device(one.batch, _device(x)), 1)[0] for one in some])
    require_all_samples(drawn[0][0].eta, most, axis=1)

    def gradients(oracle: Oracle, m: int, first: bool = False) -> torch.Tensor:
        """Return ∇F̂ with m samples for every batch (batches, parameters), from all blocks or the first only."""
        rows = []
        for some in drawn:
            cut = [_first(batch, m) if first else split_into_blocks(batch, m) for batch in some]
            each = [float(w) * _vector(oracle.grad(x, batch)) for w, batch in zip(shares, cut, strict=True)]
            rows.append(torch.stack(each).sum(0))
        return torch.stack(rows)

    gradient = 2 * gradients(reference, most) - gradients(reference, sizes[-1])
    factor = per_client / float(shares.square().sum())  # variance of one estimate over variance of a batch's mean

    def measure(m: int) -> Size:
        bias = _norm_of_mean(gradients(examined, m) - gradient)
        return Size(m, bias, _deviation(gradients(examined, m, first=True), factor))

    found = [measure(m) for m in sizes]
    return Diagnosis(_norm_of_mean(gradient), found, averaged, costs + reference.costs + examined.costs)


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
