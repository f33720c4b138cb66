"""Invariant logistic regression (Section 5.1): classify points of which only noisy measurements are seen.

    ξ = (a, b),   a ~ N(μ_n, diag(s_n²)),   b = sign(aᵀ x*_n),   η | ξ ~ N(a, σ₂² I)
    g_η(x, ξ) = ηᵀ x,   f_ξ(y) = log(1 + exp(−b y)),   r(x) = λ Σ_i γ x_i² / (1 + γ x_i²)

In the paper, μ_n = 0, s_n = σ₁ = 1, and all clients have the same x*; `clients` makes these and heterogeneous ones.

F and ∇F are known exactly. E[ηᵀx | ξ] = aᵀx, and log(1 + exp(−by)) = log(2 cosh(y/2)) − by/2, so

    F_n(x) = E log(2 cosh(v/2)) − ½ kᵀx + r(x),        v = aᵀx ~ N(μᵀx, Σ_i s_i² x_i²),   k = E[sign(aᵀx*) a]

k has a closed form, and the expectation over v is a smooth integral, computed by Gauss–Legendre quadrature with an
error of the order of rounding, ε ‖x‖ (`logistic_integral`; it is one-dimensional because the label enters linearly).
So is the bias of ∇F̂ with any m, because the mean of m measurements is Gaussian.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F

from fedcso.core.constants import Constants
from fedcso.core.crowd import Crowd, sample_of
from fedcso.core.errors import require_count, require_nonnegative, require_positive
from fedcso.core.judge import Judge
from fedcso.core.metric import Metric
from fedcso.core.problem import Batch, Problem
from fedcso.core.streams import DATA, stream
from fedcso.core.task import Task
from fedcso.problems.logistic_integral import bound_gradient, logistic_part

ACCURACY = Metric("accuracy", higher_is_better=True, share=True)


class Source(NamedTuple):
    """The distribution of a client's points."""

    truth: torch.Tensor
    """x*; the label of a is the sign of aᵀx*."""
    mean: torch.Tensor
    """μ, the mean of a."""
    scale: torch.Tensor
    """s, the standard deviation of a in each coordinate."""


class Point(NamedTuple):
    """ξ: a point a and its label b."""

    a: torch.Tensor
    label: torch.Tensor


@dataclass(frozen=True)
class InvariantLogistic(Problem):
    """Invariant logistic regression; a client's data are a `Source`."""

    dimension: int = 10
    """d, the length of x."""
    signal: float = 1.0
    """σ₁, the standard deviation of a."""
    noise: float = 1.5
    """σ₂, the standard deviation of a measurement η around a."""
    penalty: float = 0.001
    """λ, the weight of the regulariser."""
    sharpness: float = 10.0
    """γ of the regulariser (called α in the text of the paper)."""
    draw_mean: bool = False
    """Draw the mean of the inner samples directly from N(a, σ₂²/m · I): the same distribution, at a cost that does not
    depend on m. It still counts as m samples."""
    dtype: torch.dtype = torch.float32

    broadcasts = True

    def __post_init__(self) -> None:
        require_count("dimension", self.dimension)
        require_positive("signal", self.signal)
        require_positive("noise", self.noise)
        require_positive("sharpness", self.sharpness)
        require_nonnegative("penalty", self.penalty)

    # ------------------------------------------------------------------------------------- the data

    def clients(
        self,
        number: int = 16,
        *,
        seed: int = 0,
        unlike_truth: float = 0.0,
        unlike_points: float = 0.0,
    ) -> Sequence[Source]:
        """Return the sources of all clients; `seed` determines them.

        `unlike_truth` = h adds an individual direction to x*: x*_n = x* + h z_n with ‖x*‖ = 1 and z_n ~ N(0, I/d).
        `unlike_points` = h shifts and scales the points: μ_n ~ N(0, h² σ₁² I) and s_n = σ₁ exp(h z). With 0, all
        clients have the same distribution, as in the paper.
        """
        require_count("clients", number)
        rng = stream(seed, DATA, 0)

        def normal() -> torch.Tensor:
            return torch.randn(self.dimension, generator=rng, dtype=self.dtype)

        truth = F.normalize(normal(), dim=0)
        if not (unlike_truth or unlike_points):
            same = Source(truth, torch.zeros_like(truth), torch.full_like(truth, self.signal))
            return Crowd(number, lambda n: same)
        return [
            Source(
                truth=truth + unlike_truth / math.sqrt(self.dimension) * normal(),
                mean=unlike_points * self.signal * normal(),
                scale=self.signal * torch.exp(unlike_points * normal()),
            )
            for _ in range(number)
        ]

    def test_points(self, clients: Sequence[Source], number: int = 50_000, *, seed: int = 0) -> Point:
        """Draw labelled points for evaluation, in equal shares from all clients' sources."""
        sources = sample_of(clients)
        shares = [number // len(sources) + (n < number % len(sources)) for n in range(len(sources))]
        rng = stream(seed, DATA, 1)
        parts = [self.sample_outer(source, rng, (share,)) for source, share in zip(sources, shares, strict=True)]
        return Point(*(torch.cat(column) for column in zip(*parts, strict=True)))

    # ---------------------------------------------------------------------------------- the problem

    def init(self, rng: torch.Generator) -> torch.Tensor:
        """Draw x_0 ~ N(0, I), which the paper does not specify."""
        return torch.randn(self.dimension, generator=rng, dtype=self.dtype)

    def sample_outer(self, data: Source, rng: torch.Generator, shape: tuple[int, ...]) -> Point:
        """Draw a ~ N(μ, diag(s²)) and its label."""
        a = torch.randn(*shape, self.dimension, generator=rng, dtype=self.dtype)
        a = torch.addcmul(data.mean, a, data.scale)
        return Point(a, torch.sign(a @ data.truth))

    def sample_inner(self, data: Source, rng: torch.Generator, xi: Point, m: int) -> torch.Tensor:
        """Draw η ~ N(a, σ₂² I) m times, or with `draw_mean` their mean."""
        draws, spread = self._draws(m)
        noise = torch.randn(*xi.a.shape[:-1], draws, self.dimension, generator=rng, dtype=self.dtype)
        return torch.add(xi.a.unsqueeze(-2), noise, alpha=spread)

    def sample_together(
        self, clients: Sequence[Source], rngs: Sequence[torch.Generator], shape: tuple[int, ...], m: int
    ) -> Batch:
        """Draw the points and measurements of several clients; only random numbers are drawn one client at a time."""
        draws, spread = self._draws(m)
        a = torch.empty(len(clients), *shape, self.dimension, dtype=self.dtype)
        noise = torch.empty(len(clients), *shape, draws, self.dimension, dtype=self.dtype)
        for some, others, rng in zip(a, noise, rngs, strict=True):
            some.normal_(generator=rng)
            others.normal_(generator=rng)
        each = (len(clients), *(1 for _ in shape), self.dimension)
        mean, scale = (torch.stack([getattr(one, part) for one in clients]).view(each) for part in ("mean", "scale"))
        a = torch.addcmul(mean, a, scale)
        label = torch.stack([points @ source.truth for points, source in zip(a, clients, strict=True)]).sign_()
        return Batch(Point(a, label), torch.add(a.unsqueeze(-2), noise, alpha=spread))

    def _draws(self, m: int) -> tuple[int, float]:
        """Return how many measurements of a point are drawn, and their standard deviation."""
        return (1, self.noise / math.sqrt(m)) if self.draw_mean else (m, self.noise)

    def inner(self, x: torch.Tensor, xi: Point, eta: torch.Tensor) -> torch.Tensor:
        """Return (1/m) Σ_j η_jᵀx; g is linear in η, so the mean can be taken before the product."""
        return (eta.mean(-2) * x.unsqueeze(-2)).sum(-1)

    def outer(self, y: torch.Tensor, xi: Point) -> torch.Tensor:
        """Return log(1 + exp(−b y))."""
        return F.softplus(-xi.label * y)

    def regulariser(self, x: torch.Tensor) -> torch.Tensor:
        """Return λ Σ_i γ x_i² / (1 + γ x_i²) as −λ Σ_i (1 / (1 + γ x_i²) − 1), which is cheaper to differentiate."""
        return ((1 + self.sharpness * x.square()).reciprocal() - 1).sum(-1) * -self.penalty

    def closed_form(self, x: torch.Tensor, xi: Point, eta: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return F̂ + r and its gradient −b η̄ / (1 + exp(b η̄ᵀx)) + 2λγ x / (1 + γx²)², where η̄ is the mean of the η."""
        mean = eta.mean(-2)
        logit = xi.label * (mean * x.unsqueeze(-2)).sum(-1)
        wrong = torch.sigmoid(-logit) * xi.label
        denominator = 1 + self.sharpness * x.square()
        pull = x / denominator.square()
        push = (wrong.unsqueeze(-1) * mean).mean(-2)
        losses = F.softplus(-logit).mean(-1) + (denominator.reciprocal() - 1).sum(-1) * -self.penalty
        return losses, torch.sub(2 * self.penalty * self.sharpness * pull, push)

    def size(self, data: Source) -> None:
        """Return None: clients sample from distributions."""

    # ------------------------------------------------------------------------ exact values and constants

    def exact(
        self, x: torch.Tensor, clients: Sequence[Source], weights: Sequence[float]
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return F(x) and ∇F(x) in float64."""
        x = x.double()
        square = self.sharpness * x * x
        value = self.penalty * (square / (1 + square)).sum(-1)
        gradient = 2 * self.penalty * self.sharpness * x / (1 + square) ** 2
        for source, share in _shares(clients, weights):
            source_value, source_gradient = logistic_part(x, *source)
            value = value + share * source_value
            gradient = gradient + share * source_gradient
        return value, gradient

    def bias(self, x: torch.Tensor, clients: Sequence[Source], m: float) -> torch.Tensor:
        """Return E ∇F̂(x) − ∇F(x) with m inner samples, in float64."""
        x = x.double()
        parts = [
            share * (logistic_part(x, *source, self.noise**2 / m)[1] - logistic_part(x, *source)[1])
            for source, share in _shares(clients, [1.0] * len(clients))
        ]
        return torch.stack(parts).sum(0)

    def constants(self, x: torch.Tensor, clients: Sequence[Source], radius: float | None = None) -> Constants:
        """Return the largest constants of any client on the ball ‖x‖ ≤ radius (by default 2 ‖x_0‖), in closed form.

        S_f = ¼ and L_f = 1 are those of the logistic loss. g is linear in x, so L_g² bounds ‖η‖²; it is the root of the
        FOURTH moment, because variance reduction needs E‖∇F̂(x) − ∇F̂(x')‖² and η is not bounded. σ_g = σ₂ ‖x‖. S_g is
        the smoothness 2λγ of the regulariser, which is curved, but adds neither noise nor bias. F* is at least 0. The
        bias of estimators with k levels is the remainder of an extrapolation in t = σ₂²/m (docs/theory.md).
        """
        radius = 2 * float(x.norm()) if radius is None else radius
        fourth, points = [], []
        for source in clients:
            variance = source.scale.double() ** 2 + self.noise**2
            mean = source.mean.double() ** 2
            fourth.append((variance + mean).sum() ** 2 + 2 * (variance * (variance + 2 * mean)).sum())
            points.append(float((source.scale.double() ** 2 + mean).sum()))
        length = math.sqrt(max(points) + self.noise**2)
        return Constants(
            outer_smoothness=0.25,
            outer_slope=1.0,
            inner_smoothness=2 * self.penalty * self.sharpness,
            inner_slope=float(max(fourth)) ** 0.25,
            inner_noise=self.noise * radius,
            gap=float(self.exact(x, clients, [1.0] * len(clients))[0]),
            smooth_bias={
                name: share * self.noise ** (2 * levels) * bound_gradient(levels, radius, length)
                for name, (levels, share) in REMAINDERS.items()
            },
        )


REMAINDERS = {"plain": (1, 1.0), "extrapolated": (2, 1.0), "three_level": (3, 4 / 3)}
"""By estimator, its number of levels k and the factor of tᵏ sup ‖∇G⁽ᵏ⁾‖ in the bound of its bias."""


def _shares(clients: Sequence[Source], weights: Sequence[float]) -> list[tuple[Source, float]]:
    """Return the sources in float64 with their shares; clients with the same source are merged, to integrate once."""
    total = sum(weights)
    shares: dict[tuple[Any, ...], tuple[Source, float]] = {}
    for source, weight in zip(clients, weights, strict=True):
        key = tuple(tuple(part.tolist()) for part in source)
        shares[key] = source, shares.get(key, (source, 0.0))[1] + weight / total
    return [(Source(*(part.double() for part in source)), share) for source, share in shares.values()]


def invariant_logistic(
    clients: int = 16,
    dimension: int = 10,
    signal: float = 1.0,
    noise: float = 1.5,
    penalty: float = 0.001,
    sharpness: float = 10.0,
    unlike_truth: float = 0.0,
    unlike_points: float = 0.0,
    draw_mean: bool = False,
    test_points: int = 50_000,
    data_seed: int = 0,
) -> Task:
    """Classify points of which only noisy measurements are seen (Section 5.1, Figure 1).

    Args:
        clients: N, the number of clients
        dimension: d, the length of x
        signal: σ1, standard deviation of the points
        noise: σ2, standard deviation of a measurement around its point
        penalty: λ, weight of the nonconvex regulariser
        sharpness: γ of the regulariser (called α in the text of the paper)
        unlike_truth: how much the clients' labelling directions differ; 0 for not at all, as in the paper
        unlike_points: how much the clients' points differ in mean and scale; 0 for not at all
        draw_mean: draw the mean of the m measurements directly (same distribution, faster for large m)
        test_points: number of points on which accuracy is measured
        data_seed: seed of x* and the test points, separate from the seeds of runs
    """
    require_count("test_points", test_points)
    problem = InvariantLogistic(dimension, signal, noise, penalty, sharpness, draw_mean)
    sources = problem.clients(clients, seed=data_seed, unlike_truth=unlike_truth, unlike_points=unlike_points)
    return Task(
        problem,
        sources,
        test=problem.test_points(sources, test_points, seed=data_seed),
        validation=problem.test_points(sources, test_points, seed=data_seed + 1),
        judge=Judge(measure_accuracy, [ACCURACY], broadcasts=True),
    )


def measure_accuracy(x: torch.Tensor, points: Point) -> dict[str, torch.Tensor]:
    """Return the share of noise-free points that are classified correctly."""
    return {ACCURACY.name: (torch.sign(x @ points.a.T) == points.label).double().mean(-1)}
