"""Compare exact values with sampling: losses and gradients of single outer samples, and their means."""

from typing import NamedTuple

import torch
from torch.func import grad_and_value, vmap

from fedcso.core.streams import stream
from fedcso.core.tree import map_leaves
from tests.helpers import standard_error


class Sampled(NamedTuple):
    """F̂ and ∇F̂ of many independent ξ, one row for each."""

    values: torch.Tensor
    gradients: torch.Tensor

    def assert_mean_gradient(self, expected):
        """Assert that the mean gradient is this, up to four standard errors in each entry."""
        assert ((self.gradients.mean(0) - expected).abs() < 4 * standard_error(self.gradients) + 1e-12).all()

    def assert_mean_value(self, expected):
        assert abs(self.values.mean() - expected) < 4 * standard_error(self.values) + 1e-12


def sample_gradients(problem, data, x, draws, m, seed=0):
    """Return the value and the gradient of the plain estimator, without r, for each of many ξ with m inner samples."""
    rng = stream(seed, 0, 0)
    xi = problem.sample_outer(data, rng, (draws,))
    eta = problem.sample_inner(data, rng, xi, m)
    eta = map_leaves(lambda leaf: leaf.expand(draws, *leaf.shape[1:]), eta)

    def loss(x, xi, eta):
        xi, eta = (map_leaves(lambda leaf: leaf.unsqueeze(0), part) for part in (xi, eta))
        return problem.outer(problem.inner(x, xi, eta), xi).squeeze(0)

    gradients, values = vmap(grad_and_value(loss), (None, 0, 0))(x, xi, eta)
    return Sampled(values, gradients)


def assert_exact_gradient_is_that_of_the_exact_value(problem, x, clients, weights):
    """Assert that ∇F is the derivative of F by automatic differentiation."""
    point = x.clone().requires_grad_()
    value, gradient = problem.exact(point, clients, weights)
    (expected,) = torch.autograd.grad(value, point)
    torch.testing.assert_close(gradient.detach(), expected, rtol=1e-10, atol=1e-12)
