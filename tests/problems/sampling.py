"""Compare exact values with sampling: losses and gradients of single outer samples, and their means."""

from typing import NamedTuple

import torch
from torch.func import grad_and_value, jacrev, vmap

from fedcso.core.streams import stream
from fedcso.core.tree import leaves, map_leaves
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


def assert_bias_of_the_gradient_falls_with_m(problem, x, xi, eta):
    """Assert E ∇F̂ − ∇F = (1/m) ∇ E ½ tr(∇²f Cov(g)) + O(1/m²), over all m-tuples of the η of each ξ.

    `eta` holds ALL inner samples of each ξ, on its second axis. The remainder of m times the bias must halve if m is
    doubled, up to terms of higher order, and be small compared with the leading term.
    """
    count, total = leaves(xi)[0].shape[0], leaves(eta)[0].shape[1]
    point = map_leaves(lambda leaf: leaf.detach().requires_grad_(), x)
    every = map_leaves(lambda leaf: leaf.repeat_interleave(total, 0), xi)
    alone = map_leaves(lambda leaf: leaf.flatten(0, 1).unsqueeze(1), eta)
    g = problem.inner(point, every, alone).unflatten(0, (count, total))

    def gradient(value):
        found = torch.autograd.grad(value, leaves(point), retain_graph=True)
        return torch.cat([leaf.flatten() for leaf in found])

    def mean_loss(m):
        tuples = torch.cartesian_prod(*[torch.arange(total)] * m).reshape(-1, m)
        means = g[:, tuples].mean(2)
        repeated = map_leaves(lambda leaf: leaf.repeat_interleave(len(tuples), 0), xi)
        return problem.outer(means.flatten(0, 1), repeated).mean()

    def loss_of_one(y, xi):
        return problem.outer(y.unsqueeze(0), map_leaves(lambda leaf: leaf.unsqueeze(0), xi)).squeeze(0)

    mean = g.mean(1)
    spread = (g - mean.unsqueeze(1)).reshape(count, total, -1)
    covariance = torch.einsum("npi,npj->nij", spread, spread) / total
    curvature = vmap(jacrev(jacrev(loss_of_one)))(mean, xi).reshape(covariance.shape)
    leading = gradient((curvature * covariance).sum((1, 2)).mean() / 2)
    exact = gradient(problem.outer(mean, xi).mean())
    rest = [float((m * (gradient(mean_loss(m)) - exact) - leading).norm() / leading.norm()) for m in (2, 4)]
    assert rest[1] < 0.5, rest
    assert rest[1] < 0.7 * rest[0], rest
