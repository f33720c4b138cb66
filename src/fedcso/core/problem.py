"""Equation (1): what is to be minimised, and nothing else.

    F(x) = (1/N) Σ_n E_{ξ~D_n} f_ξ( E_{η|ξ} g_η(x, ξ) ) + r(x),      x ∈ X

N clients hold the distributions D_n. ξ is an outer sample (a task, a positive example, a labelled
point), η | ξ are inner samples whose distribution depends on ξ. Ordinary federated learning is the
special case g = identity in x; stochastic compositional optimisation the one where η ignores ξ.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch
from torch.func import vmap

from fedcso.core.constants import Constants
from fedcso.core.tree import Tree, map_leaves, split


class Batch(NamedTuple):
    """Outer samples ξ_1..ξ_b and, for each of them, inner samples η_1..η_m.

    Leaves of `xi` have leading axis b; leaves of `eta` have leading axes (b, m), or (1, m) where one
    inner batch serves all ξ. As drawn for several steps at once there is one more axis in front.
    """

    xi: Tree
    eta: Tree


class Problem(ABC):
    """The nested objective of equation (1), for one client.

    A problem says how ξ and η | ξ are drawn from a client's data and what f and g are. It knows
    nothing of clients, servers, batches sizes, step sizes or estimators. Five methods must be
    written (own problem in thirty lines: `examples/own_problem.py`):

    - `init(rng)`: a starting point x_0, any pytree of tensors.
    - `sample_outer(data, rng, shape)`: outer samples ξ with leading axes `shape`, independent.
    - `sample_inner(data, rng, xi, m)`: for ξ with leading axes (..., b) inner samples with leading
      axes (..., b, m), or (..., 1, m) where one batch may serve all ξ because η does not depend on ξ.
    - `inner(x, xi, eta)`: the empirical conditional mean ĝ = (1/m) Σ_j g_{η_j}(x, ξ) for each ξ; a
      pytree with leading axis b, or 1 where it is the same for all ξ. Take the mean HERE: it stands
      inside f. `per_sample` does it for a g written for a single ξ and η.
    - `outer(y, xi)`: the b losses f_ξ(y).

    Random numbers come from `rng` alone (a CPU generator that belongs to one client and round), so that
    every engine sees the same samples.

    The parts that a problem may lack (`regulariser`, `closed_form`, `project`, `exact`, `constants`) are
    None unless they are defined. Whoever needs one asks whether it is None, so a problem that wraps
    another hands on `self.exact = base.exact` and the like, and nothing is lost or invented on the way.
    How models are judged is not part of a problem: see `fedcso.core.judge`.
    """

    broadcasts: bool = False
    """True if `inner`, `outer`, `regulariser` and `project` accept any further leading axes on x (and,
    to the left of b, on ξ and η), as code written with `...` and negative axes does. Then many clients
    and settings are evaluated in one pass without `vmap`, at half the cost."""

    regulariser: Callable[[Tree], torch.Tensor] | None = None
    """r(x), added to the objective."""

    closed_form: Callable[[Tree, Tree, Tree], tuple[torch.Tensor, Tree]] | None = None
    """(x, ξ, η) to F̂ + r and its gradient, averaged over the batch's ξ, where a formula beats automatic
    differentiation. The contract tests compare the two wherever there is a formula."""

    project: Callable[[Tree], Tree] | None = None
    """The nearest point of the closed convex set X; None where X is all of R^d."""

    exact: Callable[[Tree, Sequence[Any], Sequence[float]], tuple[Any, Tree]] | None = None
    """(x, clients, weights) to F(x) and ∇F(x) without sampling error, where they are known."""

    constants: Callable[..., Constants] | None = None
    """(x, clients, radius=None) to the constants of Assumptions 1–3 for a run that starts at x and does not
    leave a ball, where they are known; each problem says which ball, and takes a radius of its own if none
    is given. Where they are not known, `fedcso.theory.estimate` estimates them."""

    @abstractmethod
    def init(self, rng: torch.Generator) -> Tree:
        """x_0."""

    @abstractmethod
    def sample_outer(self, data: Any, rng: torch.Generator, shape: tuple[int, ...]) -> Tree:
        """ξ ~ D_n, independent, with leading axes `shape`."""

    @abstractmethod
    def sample_inner(self, data: Any, rng: torch.Generator, xi: Tree, m: int) -> Tree:
        """η_1..η_m ~ P(η | ξ) for each ξ."""

    @abstractmethod
    def inner(self, x: Tree, xi: Tree, eta: Tree) -> Tree:
        """ĝ(x, ξ) = (1/m) Σ_j g_{η_j}(x, ξ), for each ξ."""

    @abstractmethod
    def outer(self, y: Tree, xi: Tree) -> torch.Tensor:
        """f_ξ(y), for each ξ."""

    def trains(self, data: Any) -> bool:
        """False for a client that has nothing to train with: it takes part in evaluation only."""
        return True

    def inner_samples(self, b: int, m: int) -> int:
        """How many inner samples a batch costs: b·m, less where they are shared or not needed."""
        return b * m

    def size(self, data: Any) -> int | None:
        """Return how much data a client has, for weighting clients by it; None if it draws from a distribution."""
        return len(data)


def starting_point(problem: Problem, rng: torch.Generator) -> Tree:
    """Return x_0, inside X."""
    x = problem.init(rng)
    return x if problem.project is None else problem.project(x)


@runtime_checkable
class FiniteOuter(Protocol):
    """A problem whose clients have finitely many ξ, for methods that keep a state for each of them."""

    def outer_count(self, data: Any) -> int | None:
        """Return how many different ξ a client has; None if its data are drawn from a continuum after all."""

    def which(self, xi: Tree) -> torch.Tensor:
        """Return the number, from 0, of each of these ξ among the client's."""


def per_sample(g: Callable[[Tree, Tree, Tree], Tree]) -> Callable[[Tree, Tree, Tree], Tree]:
    """Turn g(x, ξ, η), written for one ξ and one η, into the conditional mean over a whole batch."""
    over_batch = vmap(vmap(g, in_dims=(None, None, 0)), in_dims=(None, 0, 0))

    def mean_inside(x: Tree, xi: Tree, eta: Tree) -> Tree:
        return map_leaves(lambda leaf: leaf.mean(1), over_batch(x, xi, eta))

    return mean_inside


def ascend(value: torch.Tensor) -> torch.Tensor:
    """The same value with the gradient's sign turned: descent on every leaf becomes ascent on this one.

    So a min-max problem needs no type of its own: its dual variable enters the loss as `ascend(α)`.
    """
    return 2 * value.detach() - value


def split_steps(batch: Batch, steps: int) -> list[Batch]:
    """A batch drawn for several steps, as one batch for each."""
    return split(batch, (steps,))
