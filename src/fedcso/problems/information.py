"""The size of a planned trial by the expected value of its information.

A treatment has the benefit θ_k ~ N(μ_k, σ₀²) over the usual one in stratum k of the patients. A trial with
n_k = exp(x_k) patients, with noise σ each, is followed by the better decision for everybody: treat if the posterior
mean is above 0.

    ξ = the trial's result, ζ ~ N(0, I),   η | ξ = a draw from the posterior, θ = μ + s ζ + √v ε,   ε ~ N(0, I)
    v_k = 1 / (1/σ₀² + n_k/σ²),   s_k² = σ₀² − v_k
    g_η(x, ξ) = θ,   f(g) = −Σ_k max(0, g_k),   r(x) = c Σ_k n_k          c, the cost of a patient of the trial

μ + s ζ, the posterior mean, has the distribution that is expected before the trial. Both random variables are written
by standard normal ones that do not depend on x. F and ∇F are known, and so is the mean with m posterior draws:

    F(x)    = −Σ_k e(μ_k, s_k²) + r(x),             e(μ, s²) = E max(0, N(μ, s²)) = s φ(μ/s) + μ Φ(μ/s)
    E F̂(x) = −Σ_k e(μ_k, s_k² + v_k/m) + r(x)

So with few posterior draws a trial looks more informative than it is, and is planned too small. The kink of max has no
pointwise expansion in 1/m, but on average over ξ the bias is of order 1/m.

Reference: Ades, Lu, Claxton, Expected value of sample information calculations in medical decision modeling, 2004.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from fedcso.core.errors import require_count, require_nonnegative, require_positive
from fedcso.core.judge import Judge
from fedcso.core.metric import Metric
from fedcso.core.problem import Problem
from fedcso.core.recommended import with_methods, with_plan
from fedcso.core.streams import DATA, stream
from fedcso.core.task import Task

NET_GAIN = Metric("net_gain", "expected net gain of the trial", higher_is_better=True)
PATIENTS = Metric("patients", "patients of the trial")


class Prior(NamedTuple):
    """What a client believes about the benefit in each stratum."""

    mean: torch.Tensor
    """μ."""


class Moments(NamedTuple):
    """Variances after and before the trial's result is known."""

    after: torch.Tensor
    """v."""
    explained: torch.Tensor
    """s²."""


@dataclass(frozen=True)
class Information(Problem):
    """Minus the expected value of the best decision after a trial, plus its cost; a client's data are a `Prior`."""

    strata: int = 3
    prior_width: float = 1.0
    """σ₀."""
    noise: float = 3.0
    """σ."""
    cost: float = 0.0005
    """c, in units of the benefit for all patients."""

    broadcasts = True

    def __post_init__(self) -> None:
        require_count("strata", self.strata)
        for name in ("prior_width", "noise", "cost"):
            require_positive(name, getattr(self, name))

    def init(self, rng: torch.Generator) -> torch.Tensor:
        """Return n = 10 in all strata."""
        return torch.full((self.strata,), math.log(10.0), dtype=torch.float64)

    def moments(self, x: torch.Tensor) -> Moments:
        """Return v and s²."""
        after = 1 / (1 / self.prior_width**2 + x.exp() / self.noise**2)
        return Moments(after, self.prior_width**2 - after)

    def sample_outer(self, data: Prior, rng: torch.Generator, shape: tuple[int, ...]) -> torch.Tensor:
        """Draw ζ, and return it below the prior means, (..., 2, strata)."""
        zeta = torch.randn(*shape, self.strata, generator=rng, dtype=torch.float64)
        return torch.stack([data.mean.expand_as(zeta), zeta], -2)

    def sample_inner(self, data: Prior, rng: torch.Generator, xi: torch.Tensor, m: int) -> torch.Tensor:
        """Draw ε."""
        return torch.randn(*xi.shape[:-2], m, self.strata, generator=rng, dtype=torch.float64)

    def inner(self, x: torch.Tensor, xi: torch.Tensor, eta: torch.Tensor) -> torch.Tensor:
        """Return the mean of m draws from the posterior."""
        after, explained = self.moments(x.unsqueeze(-2))
        return xi[..., 0, :] + explained.sqrt() * xi[..., 1, :] + after.sqrt() * eta.mean(-2)

    def outer(self, y: torch.Tensor, xi: torch.Tensor) -> torch.Tensor:
        """Return minus the benefit of the best decisions."""
        return -y.relu().sum(-1)

    def regulariser(self, x: torch.Tensor) -> torch.Tensor:
        """Return the cost of the trial."""
        return self.cost * x.exp().sum(-1)

    def size(self, data: Prior) -> None:
        """Return None: clients sample from distributions."""

    def expected_objective(
        self, x: torch.Tensor, clients: Sequence[Prior], weights: Sequence[float], m: float = math.inf
    ) -> torch.Tensor:
        """Return E F̂ with m posterior draws, or F."""
        after, explained = self.moments(x)
        spread = (explained + after / m).sqrt()
        share = torch.tensor(weights, dtype=torch.float64)
        means = torch.stack([prior.mean for prior in clients])
        best = expected_positive_part(means, spread.unsqueeze(-2)).sum(-1) @ (share / share.sum())
        return self.regulariser(x) - best

    def exact(
        self, x: torch.Tensor, clients: Sequence[Prior], weights: Sequence[float]
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return F and ∇F; ∂e/∂s = φ(μ/s) and ds/dx = n v² / 2sσ²."""
        after, explained = self.moments(x)
        spread = explained.sqrt()
        share = torch.tensor(weights, dtype=torch.float64)
        means = torch.stack([prior.mean for prior in clients])
        density = torch.exp(-((means / spread.unsqueeze(-2)) ** 2) / 2) / math.sqrt(2 * math.pi)
        density = ((share / share.sum()).unsqueeze(-1) * density).sum(-2)
        growth = x.exp() * after.square() / (2 * spread * self.noise**2)
        return self.expected_objective(x, clients, weights), self.cost * x.exp() - density * growth


def expected_positive_part(mean: torch.Tensor, spread: torch.Tensor) -> torch.Tensor:
    """Return E max(0, z) for z ~ N(mean, spread²)."""
    ratio = mean / spread
    density = torch.exp(-ratio.square() / 2) / math.sqrt(2 * math.pi)
    return spread * density + mean * (1 + torch.erf(ratio / math.sqrt(2))) / 2


@with_methods(learning_rate="cosine(3)", momentum=0.3)
@with_plan(rounds=50, local_steps=10, outer_batch=16, inner_batch=8)
def information(
    clients: int = 16,
    strata: int = 3,
    prior_width: float = 1.0,
    noise: float = 3.0,
    cost: float = 0.0005,
    unlike: float = 0.5,
    data_seed: int = 0,
) -> Task:
    """Plan the size of a trial in each stratum of patients by the expected value of its information (EVSI).

    Args:
        clients: N, the number of centres that will use the result
        strata: the number of strata of patients
        prior_width: σ₀, standard deviation of the benefit before the trial
        noise: σ, standard deviation of the outcome of a patient
        cost: c, of a patient in the trial, in units of the benefit for all patients of a stratum
        unlike: standard deviation of the centres' expected benefits μ around 0
        data_seed: seed of the expected benefits
    """
    require_count("clients", clients)
    require_nonnegative("unlike", unlike)
    problem = Information(strata, prior_width, noise, cost)
    means = unlike * torch.randn(clients, strata, generator=stream(data_seed, DATA, 0), dtype=torch.float64)
    priors = [Prior(mean) for mean in means]

    def measure(x: torch.Tensor, known: list[Prior]) -> dict[str, Any]:
        """Compare the best decisions after the trial, less its cost, with those before it."""
        now = torch.stack([prior.mean.relu().sum() for prior in known]).mean()
        value = -problem.expected_objective(x, known, [1.0] * len(known)) - now
        return {NET_GAIN.name: value, PATIENTS.name: x.exp().sum(-1)}

    return Task(problem, priors, test=priors, judge=Judge(measure, [NET_GAIN, PATIENTS], broadcasts=True))
