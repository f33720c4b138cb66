"""Sinkhorn distributionally robust learning: a linear model that is trained for inputs that shift a little.

    F(θ) = λε E_{(x, y)} log E_{z ~ N(x, εI)} exp( ℓ_θ(z, y) / λε )

    ξ = (x, y), an example,   η | ξ = z, a shifted input
    g = exp( (ℓ_θ(z, y) − c_y) / λε ),   f(g) = λε log g + c_y,      c_y = ℓ_0, the loss at θ = 0

It is the dual of the worst expected loss in a ball of the entropic transport distance around the data; λ is the price
of transport, and the radius, which only matters for the choice of λ, adds a constant. ε → 0 is Wasserstein robustness,
and λ → ∞ is training on noisy inputs. Jensen: F̂ is too small on average, so a small m is not robust enough.

F and ∇F are known. ℓ depends on z through u = θᵀz + θ₀ ~ N(θᵀx + θ₀, ε‖θ‖²), which leaves an integral over one number:

    regression       ℓ = ½ (y − u)²,              F = E λ (y − θᵀx − θ₀)² / 2(λ − ‖θ‖²) − (λε/2) log(1 − ‖θ‖²/λ)
    classification   ℓ = log(1 + exp(−y u)),      y = ±1, by the trapezoidal rule, whose error is that of rounding

Regression is finite for ‖θ‖² < λ only, and x is projected onto ‖θ‖² ≤ 0.9 λ. The plain gradient is computed by a
formula in which nothing can overflow; other estimators and tracking methods use `fedcso.problems.log_mean_exp`.

Reference: Wang, Gao, Xie, Sinkhorn Distributionally Robust Optimization, 2021 (arXiv:2109.11926).
"""

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch

from fedcso.core.errors import require_count, require_positive
from fedcso.core.problem import Problem
from fedcso.core.projections import ball
from fedcso.core.recommended import with_methods, with_plan
from fedcso.core.task import Task
from fedcso.problems.linear_points import (
    LOGISTIC,
    SQUARED,
    Loss,
    Points,
    TableOptions,
    attacked_judge,
    load_points,
    predict,
)
from fedcso.problems.log_mean_exp import safe_exp, safe_log


@dataclass(frozen=True)
class SinkhornDRO(Problem):
    """Sinkhorn robustness of a linear model; x = (θ, θ₀), and a client's data are `Points`."""

    dimension: int
    """d, the number of inputs."""
    price: float = 1.0
    """λ, the price of transport."""
    spread: float = 0.1
    """ε, the variance of shifts in each coordinate."""

    broadcasts = True
    loss: ClassVar[Loss]
    """ℓ."""

    def __post_init__(self) -> None:
        require_count("dimension", self.dimension)
        require_positive("price", self.price)
        require_positive("spread", self.spread)

    @abstractmethod
    def smoothed(self, mean: torch.Tensor, variance: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """Return λε log E exp(ℓ(u, y)/λε) for u ~ N(mean, variance)."""

    @property
    def temperature(self) -> float:
        """λε."""
        return self.price * self.spread

    def init(self, rng: torch.Generator) -> torch.Tensor:
        """Return 0."""
        return torch.zeros(self.dimension + 1, dtype=torch.float64)

    def sample_outer(self, data: Points, rng: torch.Generator, shape: tuple[int, ...]) -> Points:
        """Draw examples with replacement."""
        which = torch.randint(len(data.target), shape, generator=rng)
        return Points(which, data.inputs[which], data.target[which])

    def sample_inner(self, data: Points, rng: torch.Generator, xi: Points, m: int) -> torch.Tensor:
        """Draw z ~ N(x, εI)."""
        noise = torch.randn(*xi.target.shape, m, self.dimension, generator=rng, dtype=xi.inputs.dtype)
        return torch.add(xi.inputs.unsqueeze(-2), noise, alpha=math.sqrt(self.spread))

    def inner(self, x: torch.Tensor, xi: Points, eta: torch.Tensor) -> torch.Tensor:
        """Return (1/m) Σ_j exp((ℓ_j − c)/λε)."""
        y = xi.target.unsqueeze(-1)
        losses = self.loss.value(predict(x.unsqueeze(-2), eta), y)
        return safe_exp((losses - self.loss.value(torch.zeros_like(y), y)) / self.temperature).mean(-1)

    def outer(self, y: torch.Tensor, xi: Points) -> torch.Tensor:
        """Return λε log g + c."""
        return self.temperature * safe_log(y) + self.loss.value(torch.zeros_like(xi.target), xi.target)

    def closed_form(self, x: torch.Tensor, xi: Points, eta: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return F̂ and its gradient, the mean of ∇ℓ weighted by softmax(ℓ/λε), without overflow."""
        y = xi.target.unsqueeze(-1)
        u = predict(x.unsqueeze(-2), eta)
        exponents = self.loss.value(u, y) / self.temperature
        value = self.temperature * (exponents.logsumexp(-1) - math.log(eta.shape[-2]))
        pull = exponents.softmax(-1) * self.loss.slope(u, y)
        gradient = torch.cat([(pull.unsqueeze(-1) * eta).sum(-2), pull.sum(-1, keepdim=True)], -1)
        return value.mean(-1), gradient.mean(-2)

    def exact(
        self, x: torch.Tensor, clients: Sequence[Points], weights: Sequence[float]
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return F and ∇F, over all examples of all clients."""
        inputs, target = (torch.cat([data[part] for data in clients]).double() for part in (1, 2))
        total = sum(weights)
        shares = [
            torch.full_like(data.target, w / total / len(data.target)) for data, w in zip(clients, weights, strict=True)
        ]
        with torch.enable_grad():
            point = x.detach().double().requires_grad_()
            variance = self.spread * point[..., :-1].square().sum(-1, keepdim=True)
            value = (torch.cat(shares) * self.smoothed(predict(point, inputs), variance, target)).sum(-1)
            (gradient,) = torch.autograd.grad(value.sum(), point)
        return value.detach(), gradient

    def outer_count(self, data: Points) -> int:
        """Return the number of examples."""
        return len(data.target)

    def which(self, xi: Points) -> torch.Tensor:
        """Return the indices of the examples."""
        return xi.which

    def size(self, data: Points) -> int:
        """Return the number of examples."""
        return len(data.target)


class SinkhornRegression(SinkhornDRO):
    """Robust least squares."""

    loss = SQUARED

    def smoothed(self, mean: torch.Tensor, variance: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """Return the Gaussian integral."""
        share = variance / self.temperature
        return (y - mean).square() / (2 * (1 - share)) - self.temperature / 2 * torch.log1p(-share)

    def project(self, x: torch.Tensor) -> torch.Tensor:
        """Return x with ‖θ‖² ≤ 0.9 λ."""
        return torch.cat([ball(x[..., :-1], math.sqrt(0.9 * self.price)), x[..., -1:]], -1)


class SinkhornClassification(SinkhornDRO):
    """Robust logistic regression, with labels −1 and 1."""

    loss = LOGISTIC

    def smoothed(self, mean: torch.Tensor, variance: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """Return the integral over t = (u − mean)/√variance, by the trapezoidal rule with steps of 0.1.

        exp(ℓ/λε) moves the weight of t by at most √variance/λε, in the direction of wrong predictions.
        """
        width = (variance + 1e-300).sqrt()
        reach = 10 + float(width.detach().max()) / self.temperature
        t = torch.arange(-reach, 10, 0.1, dtype=mean.dtype)
        u = mean.unsqueeze(-1) + y.unsqueeze(-1) * width.unsqueeze(-1) * t
        exponents = self.loss.value(u, y.unsqueeze(-1)) / self.temperature - t.square() / 2
        return self.temperature * (exponents.logsumexp(-1) + math.log(0.1 / math.sqrt(2 * math.pi)))


@with_methods(learning_rate="cosine(0.3)", momentum=0.3)
@with_plan(rounds=50, local_steps=10, outer_batch=8, inner_batch=16)
def sinkhorn_dro(
    data: str = "diabetes",
    clients: int = 16,
    price: float = 1.0,
    spread: float = 0.1,
    attack: float = 0.3,
    alpha: float = 0.0,
    data_seed: int = 0,
    label: str = "",
    site: str = "",
    positive: str = "",
) -> Task:
    """Learn a linear model for inputs that shift a little (Sinkhorn distributionally robust optimisation).

    Args:
        data: diabetes (regression) or breast_cancer (classification), both of scikit-learn, or your own table (.csv,
            .xlsx, .parquet or .npz) for classification, or a folder with one for each site
        clients: N, the number of clients
        price: λ, the price of transport; small is more robust, and regression needs weights of a norm below √λ
        spread: ε, the variance of shifts of the standardised inputs
        attack: the norm of the worst shift under which models are tested
        alpha: Dirichlet concentration of the targets' quarters per client, small for heterogeneous clients; 0 for IID
        data_seed: seed of the split into clients, validation and test data
        label: of your own table, the column that says which rows are positive
        site: of your own table, the column that says where a row belongs; without it every file is a site
        positive: of your own table, the labels that count as positive, separated by commas
    """
    points = load_points(data, clients, alpha, data_seed, TableOptions(label, site, positive))
    kind = SinkhornRegression if points.regression else SinkhornClassification
    problem = kind(points.test.inputs.shape[1], price, spread)
    return points.task(problem, attacked_judge(points.regression, attack))
