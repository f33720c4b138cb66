"""The interface of a problem, equation (1): what is minimised, and nothing else.

    F(x) = (1/N) Σ_n E_{ξ~D_n} f_ξ( E_{η|ξ} g_η(x, ξ) ) + r(x),      x ∈ X

N clients hold the distributions D_n. ξ is an outer sample (a task, a positive example, a labelled point), η | ξ are
inner samples whose distribution depends on ξ. Special cases are ordinary federated learning, where g(x) = x, and
stochastic compositional optimisation, where η does not depend on ξ.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch
from torch.func import vmap

from fedcso.core.constants import Constants
from fedcso.core.tree import Tree, map_leaves, split


class Batch(NamedTuple):
    """Outer samples ξ_1..ξ_b and, for each of them, inner samples η_1..η_m.

    Leaves of `xi` have leading axis b; leaves of `eta` have leading axes (b, m), or (1, m) if all ξ use the same inner
    batch. Samples drawn for several steps have one more axis in front.
    """

    xi: Tree
    eta: Tree


class Problem(ABC):
    """The nested objective of equation (1), for one client.

    A problem defines how ξ and η | ξ are drawn from a client's data, and f and g. It knows nothing about clients,
    servers, batch sizes, step sizes or estimators. Five methods are required (`examples/own_problem.py` is complete in
    thirty lines):

    - `init(rng)` returns a starting point x_0, any pytree of tensors.
    - `sample_outer(data, rng, shape)` returns independent outer samples ξ with leading axes `shape`.
    - `sample_inner(data, rng, xi, m)` returns, for ξ with leading axes (..., b), inner samples with leading axes
      (..., b, m), or (..., 1, m) if η does not depend on ξ and one batch can be used for all ξ.
    - `inner(x, xi, eta)` returns the empirical conditional mean ĝ = (1/m) Σ_j g_{η_j}(x, ξ) for each ξ: a pytree with
      leading axis b, or 1 if it is the same for all ξ. Take the mean HERE, because it is inside f. `per_sample` does
      so for a g written for a single ξ and η.
    - `outer(y, xi)` returns the b losses f_ξ(y).

    All random numbers come from `rng` (a CPU generator that belongs to one client and round), so that every engine
    draws the same samples.

    The optional parts (`regulariser`, `closed_form`, `project`, `sample_together`, `exact`, `constants`) are None if
    they are not defined, and code that needs one checks for None. A problem that wraps another can therefore pass them
    on unchanged: `self.exact = base.exact`. How models are judged is not part of a problem: see `fedcso.core.judge`.
    """

    broadcasts: bool = False
    """True if `inner`, `outer`, `regulariser` and `project` accept further leading axes on x (and, to the left of b, on
    ξ and η), as code written with `...` and negative axes does. Many clients and settings are then evaluated in one
    pass without `vmap`, at half the cost."""

    weights_at: str = ""
    """The path in x of the weights of a network (`primal.w`), for problems whose x holds more than these."""

    outer_degree: float = math.inf
    """The degree of f, if it is a polynomial of ĝ. If it is 1, no estimator is biased; if it is 2, the bias is exactly
    proportional to 1/m, and extrapolation leaves none of it."""

    regulariser: Callable[[Tree], torch.Tensor] | None = None
    """r(x), added to the objective."""

    closed_form: Callable[[Tree, Tree, Tree], tuple[torch.Tensor, Tree]] | None = None
    """(x, ξ, η) → F̂ + r and its gradient, averaged over the batch's ξ, if a formula is faster than automatic
    differentiation. The contract tests compare the two."""

    project: Callable[[Tree], Tree] | None = None
    """x → the nearest point of the closed convex set X; None if X is all of R^d."""

    sample_together: Callable[[Sequence[Any], Sequence[torch.Generator], tuple[int, ...], int], Batch] | None = None
    """(data of several clients, their generators, shape, m) → what `sample_outer` and `sample_inner` draw for each of
    them, to the last bit, with the axis of clients in front of all others; for problems whose samples are so small that
    drawing them together is faster."""

    exact: Callable[[Tree, Sequence[Any], Sequence[float]], tuple[Any, Tree]] | None = None
    """(x, clients, weights) → F(x) and ∇F(x) without sampling error, if they are known."""

    constants: Callable[..., Constants] | None = None
    """(x, clients, radius=None) → the constants of Assumptions 1–3 for a run that starts at x and stays in a ball, if
    they are known. Each problem documents the ball's centre and default radius. `fedcso.theory.estimate` estimates
    unknown constants."""

    def __init_subclass__(cls, **options: Any) -> None:
        """Leave out an inherited `sample_together` where samples are drawn in another way."""
        super().__init_subclass__(**options)
        if {"sample_outer", "sample_inner"} & vars(cls).keys() and "sample_together" not in vars(cls):
            cls.sample_together = None

    @abstractmethod
    def init(self, rng: torch.Generator) -> Tree:
        """Return x_0."""

    @abstractmethod
    def sample_outer(self, data: Any, rng: torch.Generator, shape: tuple[int, ...]) -> Tree:
        """Draw independent ξ ~ D_n with leading axes `shape`."""

    @abstractmethod
    def sample_inner(self, data: Any, rng: torch.Generator, xi: Tree, m: int) -> Tree:
        """Draw η_1..η_m ~ P(η | ξ) for each ξ."""

    @abstractmethod
    def inner(self, x: Tree, xi: Tree, eta: Tree) -> Tree:
        """Return ĝ(x, ξ) = (1/m) Σ_j g_{η_j}(x, ξ) for each ξ."""

    @abstractmethod
    def outer(self, y: Tree, xi: Tree) -> torch.Tensor:
        """Return f_ξ(y) for each ξ."""

    def trains(self, data: Any) -> bool:
        """Return whether a client has data to train on; if not, it takes part in evaluation only."""
        return True

    def inner_samples(self, b: int, m: int) -> int:
        """Return the number of inner samples in a batch: b·m, or fewer if they are shared or not needed."""
        return b * m

    def size(self, data: Any) -> int | None:
        """Return the size of a client's data, for weights by size; None if samples come from a distribution."""
        return len(data)


@runtime_checkable
class FiniteOuter(Protocol):
    """A problem whose clients have finitely many ξ, for methods that keep a state for each of them."""

    def outer_count(self, data: Any) -> int | None:
        """Return the number of different ξ of a client; None if they come from a continuous distribution."""

    def which(self, xi: Tree) -> torch.Tensor:
        """Return the index, from 0, of each of these ξ among the client's."""


@runtime_checkable
class Pairwise(Protocol):
    """A problem whose g compares scores, g_η(x, ξ) = ℓ(h(x; ξ), h(x; η)), and whose η do not depend on ξ.

    Scores can then be compared with those of other clients. `inner(x, ξ, η)` is `compare(*score(x, ξ, η))`.
    """

    def score(self, x: Tree, xi: Tree, eta: Tree) -> tuple[Tree, Tree]:
        """Return all that ℓ needs to know of each ξ, with leading axis b, and of each η, with axes (b, m) or (1, m)."""

    def compare(self, outer: Tree, inner: Tree, counts: torch.Tensor | None = None) -> Tree:
        """Return ĝ of each ξ, given what `score` returned; each η counts as one, or as so many.

        Leaves of `inner` may also have a single leading axis, if all ξ are compared with the same η.
        """


class Lasting(IntEnum):
    """How long a client keeps a task: for a local step, for all steps of a round, or for the whole run."""

    STEP = 0
    ROUND = 1
    RUN = 2


@runtime_checkable
class Adapting(Protocol):
    """A problem whose g adapts x to a task by steps x − λ∇L(x; η), for methods of meta-learning."""

    @property
    def inner_steps(self) -> int:
        """The number of such steps in training; 0 if models are adapted in evaluation only, and g(x) = x."""

    def task_lasts(self, data: Any) -> Lasting:
        """Return how long a client keeps a task."""


@runtime_checkable
class ExponentialOuter(Protocol):
    """A problem with f(y) = λ exp((y − c)/λ), for methods that give clients weights by their losses."""

    @property
    def temperature(self) -> float:
        """λ."""

    def log_weight(self, y: torch.Tensor) -> torch.Tensor:
        """Return log f'(y) = (y − c)/λ, the logarithm of a client's weight."""


def per_sample(g: Callable[[Tree, Tree, Tree], Tree]) -> Callable[[Tree, Tree, Tree], Tree]:
    """Turn g(x, ξ, η), written for one ξ and one η, into a function that returns ĝ for a whole batch."""
    over_batch = vmap(vmap(g, in_dims=(None, None, 0)), in_dims=(None, 0, 0))

    def mean_inside(x: Tree, xi: Tree, eta: Tree) -> Tree:
        return map_leaves(lambda leaf: leaf.mean(1), over_batch(x, xi, eta))

    return mean_inside


def ascend(value: torch.Tensor) -> torch.Tensor:
    """Return the value unchanged, with its gradient negated: descent on all leaves becomes ascent on this one.

    A min-max problem is written as an ordinary one whose dual variable enters the loss as `ascend(α)`.
    """
    return 2 * value.detach() - value


def split_steps(batch: Batch, steps: int) -> list[Batch]:
    """Split a batch drawn for several steps into one batch for each step."""
    return split(batch, (steps,))
