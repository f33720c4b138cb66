"""Every problem whose gradient is known, so small that all of its samples can be listed.

Where the data are finite, each ξ has two inner samples. Where η is Gaussian and g is linear in it, the mean of a block
of samples is Gaussian too, and stands for the block: the nodes of Gauss–Hermite quadrature are all that it can be.
Where g is not linear in a Gaussian η (Sinkhorn), η has two nodes, with the first three moments of the Gaussian.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import nn

from fedcso.core.problem import Problem
from fedcso.core.streams import stream
from fedcso.core.tree import map_leaves
from fedcso.datasets import Examples
from fedcso.problems import (
    KLDRO,
    Contrastive,
    Information,
    Instrumental,
    InvariantImages,
    InvariantLogistic,
    NestedQuadratic,
    OneWayCVaR,
    OneWayKL,
    PolicyEvaluation,
    RankedLists,
    SinkhornClassification,
    SinkhornRegression,
    TwoWayKL,
)
from fedcso.problems.auprc import Positives
from fedcso.problems.conditional_squares import Observations
from fedcso.problems.contrastive import Pair
from fedcso.problems.grouped_rows import group_rows
from fedcso.problems.information import Prior, expected_positive_part
from fedcso.problems.invariant_logistic import Point, Source
from fedcso.problems.linear_points import LOGISTIC, Points
from fedcso.problems.ndcg import Item, Lists, _weights
from fedcso.problems.policy_evaluation import Chain
from fedcso.problems.scores import Scores
from tests.estimators.expectations import Block, Known, finite

REAL = torch.float64


def normal(number: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return nodes and weights for expectations over N(0, 1)."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(number)
    return torch.from_numpy(nodes), torch.from_numpy(weights / math.sqrt(2 * math.pi))


def gaussian(mean: torch.Tensor, spread: float, number: int = 7) -> Callable[[int], Block]:
    """Return the means of blocks of samples from N(mean, spread²), where mean has the shape (ξ, 1)."""
    nodes, weights = normal(number)

    def block(size: int) -> Block:
        means = mean.unsqueeze(1) + spread / math.sqrt(size) * nodes.reshape(-1, 1)
        return Block(means.unsqueeze(2), weights)

    return block


def equal(number: int) -> torch.Tensor:
    return torch.full((number,), 1 / number, dtype=REAL)


def real(*values) -> torch.Tensor:
    return torch.tensor(values, dtype=REAL)


def linear(inputs: int, outputs: int) -> Callable[[], nn.Module]:
    return partial(nn.Linear, inputs, outputs, dtype=REAL)


def nested_quadratic() -> Known:
    problem, x, centre = NestedQuadratic(dimension=1), real(1.5), real(0.7)
    nodes, weights = normal(7)
    xi = (centre + problem.spread * nodes).unsqueeze(1)
    exact = problem.exact(x, [centre], [1.0])[1]
    return Known(problem, x, xi, weights, gaussian(1 + problem.coupling * xi, problem.noise), exact)


def invariant_logistic() -> Known:
    problem = InvariantLogistic(dimension=1, noise=1.5, dtype=REAL)
    source, x = Source(real(1.0), real(0.3), real(1.0)), real(0.8)
    # The label jumps at a = 0, so the two sides are integrated separately.
    nodes, weights = np.polynomial.legendre.leggauss(24)
    side = torch.from_numpy(nodes * 4 + 4)
    a = torch.cat([-side, side]).unsqueeze(1)
    density = torch.exp(-((a.squeeze(1) - 0.3) ** 2) / 2) / math.sqrt(2 * math.pi)
    xi = Point(a, torch.sign(a.squeeze(1)))
    exact = problem.exact(x, [source], [1.0])[1]
    return Known(problem, x, xi, torch.from_numpy(weights * 4).repeat(2) * density, gaussian(a, problem.noise), exact)


@dataclass(frozen=True)
class AveragedInformation(Problem):
    """The value of information with the mean over ζ taken in closed form, because the kink of max defies quadrature.

    E_ζ max(0, μ + sζ + y) = e(μ + y, s²) for a given y = √v η̄, so all means over ζ and η are those of `Information`.
    """

    base: Information

    def init(self, rng):
        return self.base.init(rng)

    def sample_outer(self, data, rng, shape):
        return data.mean.expand(*shape, -1)

    def sample_inner(self, data, rng, xi, m):
        return torch.randn(*xi.shape[:-1], m, self.base.strata, generator=rng, dtype=REAL)

    def inner(self, x, xi, eta):
        after, explained = self.base.moments(x)
        return after.sqrt() * eta.mean(1), explained.sqrt().expand(len(xi), -1)

    def outer(self, y, xi):
        return -expected_positive_part(xi + y[0], y[1]).sum(-1)

    def regulariser(self, x):
        return self.base.regulariser(x)


def information() -> Known:
    base, x, mean = Information(strata=1), real(math.log(10.0)), real(0.4)
    exact = base.exact(x, [Prior(mean)], [1.0])[1]
    block = gaussian(torch.zeros(1, 1, dtype=REAL), 1.0, number=9)
    return Known(AveragedInformation(base), x, mean.unsqueeze(0), equal(1), block, exact, of=Information)


def instrumental() -> Known:
    z = np.array([0, 0, 1, 1])
    features, outcome = real([1.0, 0.2], [0.4, 1.1], [0.9, -0.7], [-0.5, 0.6]), real(1.0, 0.3, -0.4, 0.8)
    problem, x, groups = Instrumental(2), real(0.7, -0.4), group_rows(z, features, outcome)
    eta = Observations(groups.features.reshape(2, 2, 2), groups.outcome.reshape(2, 2))
    exact = problem.exact(x, [groups], [1.0])[1]
    return Known(problem, x, torch.arange(2), equal(2), finite(eta, equal(2)), exact)


def policy_evaluation() -> Known:
    """Two states, between which steps go with the same probabilities from both."""
    chance = real(0.3, 0.7)
    features, reward = real([1.0, 0.5], [1.0, -0.8]), real([0.2, 0.9], [0.7, 0.1])
    chain = Chain(real(0.4, 0.6), chance.expand(2, -1), reward, features, 0.9)
    problem, x = PolicyEvaluation(2), real(0.8, 0.6)
    eta = Observations(features.unsqueeze(1) - chain.discount * features, reward)
    exact = problem.exact(x, [chain], [1.0])[1]
    return Known(problem, x, torch.arange(2), chain.visits, finite(eta, chance), exact)


def sinkhorn(kind: type[SinkhornRegression] | type[SinkhornClassification]) -> Known:
    problem, x = kind(1, price=4.0, spread=0.5), real(0.3, 0.1)
    data = Points(torch.arange(1), real([0.6]), real(1.0))
    nodes, weights = normal(2)
    shifted = data.inputs.unsqueeze(1) + math.sqrt(problem.spread) * nodes.reshape(1, -1, 1)
    exact = problem.exact(x, [data], [1.0])[1]
    return Known(problem, x, data, equal(1), finite(shifted, weights), exact, agrees_to=1e-2)


def kl_dro() -> Known:
    data = Points(torch.arange(2), real([0.5, -1.0], [1.2, 0.4]), real(1.0, -1.0))
    problem, x = KLDRO(2, LOGISTIC, temperature=2.0, offset=0.5), real(0.3, -0.3, 0.1)
    eta = map_leaves(lambda leaf: leaf.unsqueeze(0), data)
    exact = problem.exact(x, [data], [1.0])[1]
    return Known(problem, x, torch.zeros(1, dtype=torch.int64), equal(1), finite(eta, equal(2)), exact)


def invariant_images() -> Known:
    """Pictures of four pixels, as they are and turned."""
    pixels = torch.tensor([[0, 1, 2, 3], [3, 0, 1, 2]])
    problem = InvariantImages(linear(4, 3), pixels)
    x = problem.init(stream(0, 0, 0))
    data = Examples(real([1.0, 0.2, -0.5, 0.9], [-0.3, 0.8, 1.4, 0.1]), torch.tensor([0, 2]))
    exact = problem.exact(x, [data], [1.0])[1]
    return Known(problem, x, data, equal(2), finite(problem.transformed(data.inputs), equal(2)), exact)


def partial_auc(kind: type[OneWayKL], temperature: float) -> Known:
    problem = kind(Scores(linear(2, 1)), 1.0, temperature)
    x = problem.init(stream(0, 0, 0))
    inputs = real([0.7, 0.1], [-0.2, 0.9], [0.3, -0.4], [-0.3, 0.1])
    data = Examples(inputs, torch.tensor([1, 1, 0, 0]))
    xi = Positives(torch.arange(2), inputs[:2])
    exact = problem.exact(x, [data], [1.0])[1]
    return Known(problem, x, xi, equal(2), finite(inputs[2:].expand(2, 2, 2), equal(2)), exact)


def ndcg() -> Known:
    """A list of three items, the first of which is relevant."""
    data = Lists(real([[0.5, -0.3], [0.6, 0.4], [0.1, 0.2]]), real([1.0, 0.0, 0.0]))
    problem, x = RankedLists(2, 3), real(0.4, 0.7)
    xi = Item(torch.zeros(1, dtype=torch.int64), data.features[:, 0], _weights(data)[:, 0])
    exact = problem.exact(x, [data], [1.0])[1]
    return Known(problem, x, xi, equal(1), finite(data.features[:, 1:], equal(2)), exact)


def contrastive() -> Known:
    """Two views of each of two pictures, which are compared with both views of the other one."""
    data = real([[1.0, 0.2, -0.4], [0.8, 0.3, -0.2]], [[-0.3, 0.9, 0.5], [0.1, 0.7, 0.9]])
    problem = Contrastive(linear(3, 2), temperature=0.5)
    x = problem.init(stream(0, 0, 0))
    xi = Pair(torch.arange(4), torch.stack([data[0], data[0].flip(0), data[1], data[1].flip(0)]))
    others = torch.stack([data[1], data[1], data[0], data[0]])
    exact = problem.exact(x, [data], [1.0])[1]
    return Known(problem, x, xi, equal(4), finite(others, equal(2)), exact)


KNOWN: dict[str, Callable[[], Known]] = {
    "nested_quadratic": nested_quadratic,
    "invariant_logistic": invariant_logistic,
    "information": information,
    "instrumental": instrumental,
    "policy_evaluation": policy_evaluation,
    "sinkhorn_regression": partial(sinkhorn, SinkhornRegression),
    "sinkhorn_classification": partial(sinkhorn, SinkhornClassification),
    "kl_dro": kl_dro,
    "invariant_images": invariant_images,
    "one_way_kl": partial(partial_auc, OneWayKL, 4.0),
    "two_way_kl": partial(partial_auc, TwoWayKL, 3.0),
    "one_way_cvar": partial(partial_auc, OneWayCVaR, 1.0),
    "ndcg": ndcg,
    "contrastive": contrastive,
}
