"""Distributionally robust learning of a linear model within each client: hard examples count more.

    F(x) = (1/N) Σ_n λ log E_{z ~ D_n} exp( ℓ(x; z) / λ )

    ξ is the client itself,   η = an example z of the client
    g = exp( (ℓ − c)/λ ),   f(g) = λ log g + c,      c, a fixed number: the mean loss at x = 0

It is the largest expected loss over all distributions of examples, less λ times their Kullback–Leibler divergence from
the client's. Examples have the weights softmax(ℓ/λ): λ → ∞ is ordinary learning, and small λ look at the hardest
examples only. F and ∇F are exact by a pass through all examples.

    E F̂ − F = −(λ/2m) Var(g)/(E g)² + O(1/m²):      a small m is not robust enough

There is one value of E g for each client, so one tracked inner value (Local-SCGD) has no bias if clients are alike. But
its gradients have the weights g/y of a y that does not contain the new g; without clipping they can be very large. The
plain gradient is computed by a formula in which nothing can overflow; other estimators and tracking methods use
`fedcso.problems.log_mean_exp`.

For Gaussian residuals r ~ N(μ, s²), ℓ = ½ r² and λ > s²: F = −(λ/2) log(1 − s²/λ) + μ²λ / 2(λ − s²).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from fedcso.core.errors import require_count, require_positive
from fedcso.core.judge import Judge
from fedcso.core.metric import Metric
from fedcso.core.problem import Problem
from fedcso.core.recommended import with_methods, with_plan
from fedcso.core.task import Task
from fedcso.problems.linear_points import (
    ACCURACY,
    ERROR,
    LOGISTIC,
    SQUARED,
    Loss,
    Points,
    TableOptions,
    load_points,
    predict,
)
from fedcso.problems.log_mean_exp import safe_exp, safe_log

WORST_DECILE = Metric("worst_decile", "mean loss of the worst tenth of examples", higher_is_better=False)


@dataclass(frozen=True)
class KLDRO(Problem):
    """The log-mean-exp of a linear model's losses; x = (θ, θ₀), and a client's data are `Points`."""

    dimension: int
    """d, the number of inputs."""
    loss: Loss
    """ℓ."""
    temperature: float = 1.0
    """λ."""
    offset: float = 0.0
    """c."""

    broadcasts = True

    def __post_init__(self) -> None:
        require_count("dimension", self.dimension)
        require_positive("temperature", self.temperature)

    def init(self, rng: torch.Generator) -> torch.Tensor:
        """Return 0."""
        return torch.zeros(self.dimension + 1, dtype=torch.float64)

    def sample_outer(self, data: Points, rng: torch.Generator, shape: tuple[int, ...]) -> torch.Tensor:
        """Return ξ = 0: there is one for each client."""
        return torch.zeros(shape, dtype=torch.int64)

    def sample_inner(self, data: Points, rng: torch.Generator, xi: torch.Tensor, m: int) -> Points:
        """Draw examples with replacement, one batch for all ξ, which are the same."""
        which = torch.randint(len(data.target), (*xi.shape[:-1], 1, m), generator=rng)
        return Points(which, data.inputs[which], data.target[which])

    def inner(self, x: torch.Tensor, xi: torch.Tensor, eta: Points) -> torch.Tensor:
        """Return (1/m) Σ_j exp((ℓ_j − c)/λ)."""
        losses = self.loss.value(predict(x.unsqueeze(-2), eta.inputs), eta.target)
        return safe_exp((losses - self.offset) / self.temperature).mean(-1)

    def outer(self, y: torch.Tensor, xi: torch.Tensor) -> torch.Tensor:
        """Return λ log g + c."""
        losses = self.temperature * safe_log(y) + self.offset
        return losses.expand(*losses.shape[:-1], xi.shape[-1])

    def closed_form(self, x: torch.Tensor, xi: torch.Tensor, eta: Points) -> tuple[torch.Tensor, torch.Tensor]:
        """Return F̂ and its gradient, the mean of ∇ℓ weighted by softmax(ℓ/λ), without overflow."""
        return self._log_mean_exp(x, eta.inputs.flatten(-3, -2), eta.target.flatten(-2))

    def exact(
        self, x: torch.Tensor, clients: Sequence[Points], weights: Sequence[float]
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return F and ∇F."""
        parts = [self._log_mean_exp(x, data.inputs, data.target) for data in clients]
        shares = [weight / sum(weights) for weight in weights]
        values, gradients = (
            sum(w * one for w, one in zip(shares, column, strict=True)) for column in zip(*parts, strict=True)
        )
        return torch.as_tensor(values), torch.as_tensor(gradients)

    def outer_count(self, data: Points) -> int:
        """Return 1."""
        return 1

    def which(self, xi: torch.Tensor) -> torch.Tensor:
        """Return 0 for each ξ."""
        return xi

    def inner_samples(self, b: int, m: int) -> int:
        """Return m, because one batch is used for all ξ."""
        return m

    def size(self, data: Points) -> int:
        """Return the number of examples."""
        return len(data.target)

    def _log_mean_exp(
        self, x: torch.Tensor, inputs: torch.Tensor, target: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return λ log mean exp(ℓ/λ) over examples (..., n, d), and its gradient."""
        u = predict(x, inputs)
        exponents = self.loss.value(u, target) / self.temperature
        pull = exponents.softmax(-1) * self.loss.slope(u, target)
        value = self.temperature * (exponents.logsumexp(-1) - math.log(exponents.shape[-1]))
        return value, torch.cat([(pull.unsqueeze(-1) * inputs).sum(-2), pull.sum(-1, keepdim=True)], -1)


def _judge(loss: Loss, regression: bool) -> Judge:
    """Return the judge of the worst tenth of examples, and of all of them."""

    def measure(x: torch.Tensor, data: Points) -> dict[str, Any]:
        u = predict(x, data.inputs)
        losses = loss.value(u, data.target)
        worst = losses.topk(max(1, len(data.target) // 10), -1).values.mean(-1)
        usual = 2 * losses if regression else (u * data.target > 0).double()
        return {WORST_DECILE.name: worst, (ERROR if regression else ACCURACY).name: usual.mean(-1)}

    return Judge(measure, [WORST_DECILE, ERROR if regression else ACCURACY], broadcasts=True)


@with_methods(learning_rate="cosine(0.1)", momentum=0.3)
@with_plan(rounds=50, local_steps=10, inner_batch=16, clip=1.0)
def kl_dro(
    data: str = "diabetes",
    temperature: float = 1.0,
    clients: int = 16,
    alpha: float = 0.0,
    data_seed: int = 0,
    label: str = "",
    site: str = "",
    positive: str = "",
) -> Task:
    """Learn a linear model for hard examples (distributionally robust optimisation with a KL penalty).

    Args:
        data: diabetes (regression) or breast_cancer (classification), both of scikit-learn, or your own table (.csv,
            .xlsx, .parquet or .npz) for classification, or a folder with one for each site
        temperature: λ; small looks at the hardest examples only
        clients: N, the number of clients
        alpha: Dirichlet concentration of the targets' quarters per client, small for heterogeneous clients; 0 for IID
        data_seed: seed of the split into clients, validation and test data
        label: of your own table, the column that says which rows are positive
        site: of your own table, the column that says where a row belongs; without it every file is a site
        positive: of your own table, the labels that count as positive, separated by commas
    """
    points = load_points(data, clients, alpha, data_seed, TableOptions(label, site, positive))
    loss = SQUARED if points.regression else LOGISTIC
    train = torch.cat([client.target for client in points.clients])
    offset = float(loss.value(torch.zeros_like(train), train).mean())
    problem = KLDRO(points.test.inputs.shape[1], loss, temperature, offset)
    return points.task(problem, _judge(loss, points.regression))
