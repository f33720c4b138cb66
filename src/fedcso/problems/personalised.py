"""Personalised federated learning: one model, from which every client takes a few gradient steps on its own data.

    ξ, η ~ examples of the client, independent of each other
    g_η(x) = x − λ ∇ℓ(x; η)          a step of adaptation to the client (or several)
    f_ξ(y) = ℓ(y; ξ)

    min_x (1/N) Σ_n E_ξ ℓ( x − λ ∇L_n(x); ξ ),        L_n(x) = E_η ℓ(x; η)

This is meta-learning with one task per client, the objective of Per-FedAvg: the m inner samples of a step are its D,
which all ξ share, and the b outer samples its D'. Without steps of adaptation in training it is ordinary federated
learning, which is judged after adaptation like everything else.

With v = ∇f(y), the gradient is v − λ ∇²L v. `first_order` leaves out the second term, and a `difference` δ > 0 replaces
it by a difference of gradients (`hessian_free`).

Reference: Fallah, Mokhtari, Ozdaglar, Personalized Federated Learning with Theoretical Guarantees: A Model-Agnostic
Meta-Learning Approach, NeurIPS 2020.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch.func import grad

from fedcso.core.errors import FedcsoError, require_count, require_nonnegative, require_positive
from fedcso.core.judge import ByClient, Judge
from fedcso.core.problem import Lasting, Problem
from fedcso.core.recommended import with_methods, with_plan
from fedcso.core.task import Task
from fedcso.core.tree import Tree, add_scaled, map_leaves
from fedcso.datasets import Examples, load
from fedcso.datasets.partition import pathological, split_each
from fedcso.datasets.rows import share
from fedcso.models.functional import Functional
from fedcso.problems.classification import ACCURACY, LOSS, Classification, build_network
from fedcso.problems.hessian_free import hessian_free_step
from fedcso.problems.ordinary import Ordinary


@dataclass(frozen=True)
class Personalised(Problem):
    """The loss of an ordinary problem after adaptation to the client; a client's data are those of that problem."""

    base: Ordinary
    """The ordinary problem, whose loss is ℓ."""
    inner_rate: float = 0.1
    """λ, the step size of the adaptation."""
    inner_steps: int = 1
    """The number of adaptation steps in training; 0 for ordinary federated learning."""
    first_order: bool = False
    """Leave out the second derivatives: a cheaper direction, which is not the gradient."""
    difference: float = 0.0
    """δ, the length of the differences that replace second derivatives; 0 to compute these exactly."""

    def __post_init__(self) -> None:
        require_positive("inner_rate", self.inner_rate)
        require_count("inner_steps", self.inner_steps, least=0)
        require_nonnegative("difference", self.difference)
        if self.first_order and self.difference:
            raise FedcsoError("first_order leaves out what difference replaces: use one of them")

    def init(self, rng: torch.Generator) -> Tree:
        """Return x_0 of the ordinary problem."""
        return self.base.init(rng)

    def sample_outer(self, data: Any, rng: torch.Generator, shape: tuple[int, ...]) -> Examples:
        """Draw examples with replacement."""
        return self.base.sample_outer(data, rng, shape)

    def sample_inner(self, data: Any, rng: torch.Generator, xi: Examples, m: int) -> Examples:
        """Draw m further examples, which all ξ of a step share."""
        return self.base.sample_outer(data, rng, (*xi.labels.shape[:-1], 1, m))

    def inner(self, x: Tree, xi: Examples, eta: Examples) -> Tree:
        """Return the adapted x with a leading axis of 1, because it is the same for all ξ."""
        adapted = self.adapt(x, Examples(*(column[0] for column in eta)), self.inner_steps)
        return map_leaves(lambda leaf: leaf.unsqueeze(0), adapted)

    def outer(self, y: Tree, xi: Examples) -> torch.Tensor:
        """Return the loss of each example."""
        return self.base.outer(y, xi)

    def adapt(self, x: Tree, support: Examples, steps: int) -> Tree:
        """Return x after some steps on these examples; its gradient is exact, of first order or by differences."""
        for _ in range(steps):
            x = self._step(x, support)
        return x

    def _step(self, x: Tree, support: Examples) -> Tree:
        if self.difference:
            return hessian_free_step(self.slope, x, support, self.inner_rate, self.difference)
        slope = self.slope(x, support)
        slope = map_leaves(torch.Tensor.detach, slope) if self.first_order else slope
        return add_scaled(x, slope, -self.inner_rate)

    def slope(self, x: Tree, support: Examples) -> Tree:
        """Return ∇L(x; support)."""
        return grad(lambda point: self.base.losses(point, support).mean())(x)

    def inner_samples(self, b: int, m: int) -> int:
        """Return m, which all ξ share, or 0 if there is no adaptation."""
        return m if self.inner_steps else 0

    def task_lasts(self, data: Any) -> Lasting:
        """Return that a client keeps its task: its data."""
        return Lasting.RUN

    def trains(self, data: Any) -> bool:
        """Return whether the client has any examples."""
        return self.base.trains(data)

    def size(self, data: Any) -> int | None:
        """Return the number of examples."""
        return self.base.size(data)


class Personal(NamedTuple):
    """Held-out data of one client: examples to adapt to, and examples to measure on."""

    support: Examples
    query: Examples


def personal_judge(problem: Personalised, network: Functional, steps: int) -> Judge:
    """Return a judge that adapts a network to each client, and measures loss and accuracy over all their examples."""

    def evaluate(x: Tree, clients: Sequence[Personal]) -> dict[str, Any]:
        logits = torch.cat([network.apply(problem.adapt(x, one.support, steps), one.query.inputs) for one in clients])
        labels = torch.cat([one.query.labels for one in clients])
        return {
            LOSS.name: F.cross_entropy(logits, labels),
            ACCURACY.name: (logits.argmax(-1) == labels).double().mean(),
        }

    return Judge(evaluate, [ACCURACY, LOSS])


@with_methods("Per-FedAvg", "FCSG-M", learning_rate=0.5)
@with_plan(rounds=60, local_steps=5, outer_batch=20, inner_batch=20, evaluate_every=5)
def personalised(
    data: str = "digits",
    clients: int = 16,
    classes: int = 5,
    hidden: int = 0,
    inner_rate: float = 0.1,
    inner_steps: int = 1,
    test_steps: int = 1,
    first_order: bool = False,
    difference: float = 0.0,
    data_seed: int = 0,
) -> Task:
    """Classify with a model that every client adapts to its own data: the objective of Per-FedAvg.

    Args:
        data: name of a data set (see: fedcso list)
        clients: N, the number of clients that share the data
        classes: number of different labels at each client
        hidden: number of hidden units; 0 for a linear model
        inner_rate: λ, the step size of the adaptation
        inner_steps: number of adaptation steps in training; 0 for ordinary training (FedAvg, Reptile)
        test_steps: number of adaptation steps in evaluation, on the client's training examples
        first_order: leave out the second derivatives: Per-FedAvg (FO)
        difference: δ, such as 0.001, to replace second derivatives by differences of gradients: Per-FedAvg (HF)
        data_seed: seed of the division among clients, and into training, validation and test data
    """
    require_count("hidden", hidden, least=0)
    require_count("test_steps", test_steps, least=0)
    examples = load(data)
    parts = split_each(pathological(examples.labels, clients, classes, data_seed), data_seed)
    base = Classification(partial(build_network, examples.inputs.shape[1], hidden, int(examples.labels.max()) + 1))
    problem = Personalised(base, inner_rate, inner_steps, first_order, difference)
    validation = [Personal(examples.select(train), examples.select(held)) for train, held, _ in parts]
    test = [Personal(examples.select(train), examples.select(held)) for train, _, held in parts]
    return Task(
        problem,
        [share(examples, train) for train, _, _ in parts],
        test=ByClient(test, [[one] for one in test]),
        validation=validation,
        judge=personal_judge(problem, base.network, test_steps),
    )
