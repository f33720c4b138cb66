"""Model-agnostic meta-learning: a starting point from which a few labelled samples suffice (Section 5.2).

    ξ = (task, its query set),   η | ξ ~ one support sample of each of the task's classes,   m = shots
    g_η(x, ξ) = x − λ ∇L(x; η)       one (or several) steps of adaptation to the task
    f_ξ(y)    = L(y; query set)

    min_x (1/N) Σ_n E_ξ L( x − λ ∇L(x; support); query )

The support samples are drawn from the sampled task's own classes and never overlap with its query set: that is the
conditional distribution. L is the mean cross-entropy over a set; with batch norm it is a function of the whole set,
so the mean over the m support samples is taken inside L.

The meta-gradient needs no graph through the adapted point: with v = ∇f(y) it is v − λ ∇²L(x; support) v, which is
exact. `first_order` leaves the second term out.

Reference: Finn, Abbeel, Levine, Model-Agnostic Meta-Learning for Fast Adaptation of Deep Networks, ICML 2017.
"""

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F

from fedcso.core.errors import FedcsoError, require_count, require_positive
from fedcso.core.judge import Judge
from fedcso.core.metric import Metric
from fedcso.core.problem import Problem
from fedcso.core.task import Task, with_plan
from fedcso.core.tree import Tree, add_scaled, index, leaves, map_leaves, stack, unflatten_like
from fedcso.core.workers import pool
from fedcso.models.conv4 import Conv4
from fedcso.models.functional import Functional, Model
from fedcso.problems.few_shot_tasks import Classes, Episodes, FixedTasks, Query, fixed, freely, images_of, load_few_shot

ACCURACY = Metric("accuracy", higher_is_better=True, share=True)
LOSS = Metric("loss", higher_is_better=False)


@dataclass(frozen=True)
class MAML(Problem):
    """Few-shot classification; a client's data are its `Classes`, of which tasks are drawn."""

    model: Model
    ways: int = 5
    queries: int = 15
    """Query images of each class."""
    inner_rate: float = 0.4
    """λ, the step size of the adaptation."""
    inner_steps: int = 1
    """Steps of the adaptation while training."""
    test_steps: int = 3
    """Steps of the adaptation when evaluated."""
    first_order: bool = False
    """Leave the second derivatives out: another, cheaper, direction."""
    network: Functional = field(init=False, repr=False)

    def __post_init__(self) -> None:
        require_count("ways", self.ways, least=2)
        require_count("queries", self.queries)
        require_positive("inner_rate", self.inner_rate)
        require_count("inner_steps", self.inner_steps)
        require_count("test_steps", self.test_steps)
        object.__setattr__(self, "network", Functional(self.model))

    # ---------------------------------------------------------------------------------- sampling

    def init(self, rng: torch.Generator) -> dict[str, torch.Tensor]:
        """The network's weights, see `Model`."""
        return self.network.init(rng)

    def sample_outer(self, data: Classes, rng: torch.Generator, shape: tuple[int, ...]) -> Query:
        """Tasks of different classes, and for each class which of its drawings are asked about."""
        held = images_of(data)
        count, drawings = held.shape[:2]
        if count < self.ways:
            raise FedcsoError(f"a client has {count} classes, too few for {self.ways}-way tasks")
        if drawings <= self.queries:
            raise FedcsoError(
                f"{drawings} drawings a class leave none to learn from beside {self.queries} query images"
            )
        # The places of sorted random numbers: a random choice without repetition, for all tasks at once.
        if isinstance(data, FixedTasks):
            task = torch.randint(len(data.tasks), shape, generator=rng)
            classes = data.tasks[task]
        else:
            task = torch.full(shape, -1)
            classes = torch.rand(*shape, count, generator=rng).argsort(-1)[..., : self.ways]
        order = torch.rand(*shape, self.ways, drawings, generator=rng).argsort(-1)
        images = held[classes.unsqueeze(-1), order[..., : self.queries]]
        return Query(task, classes, order, self._as_batch(images, len(shape)))

    def sample_inner(self, data: Classes, rng: torch.Generator, xi: Query, m: int) -> torch.Tensor:
        """m shots: for each of the task's classes m drawings that are not in its query set."""
        rest = xi.order[..., self.queries :]
        if m > rest.shape[-1]:
            raise FedcsoError(
                f"inner_batch = {m} shots are too many: beside {self.queries} query images a class has only "
                f"{rest.shape[-1]} drawings left"
            )
        # `order` is random already, so its next m drawings are a random choice.
        images = images_of(data)[xi.classes.unsqueeze(-1), rest[..., :m]]
        return images.transpose(-3, -4).unsqueeze(-3).float() / 255  # (…, m, ways, 1, height, width)

    def _as_batch(self, images: torch.Tensor, lead: int) -> torch.Tensor:
        """(…, ways, queries, h, w) as network input, class by class."""
        return images.flatten(lead, lead + 1).unsqueeze(-3).float() / 255

    # ---------------------------------------------------------------------------------- f and g

    def inner(self, x: Tree, xi: Query, eta: torch.Tensor) -> Tree:
        """The adapted parameters of every task, with their history (for methods that track them)."""
        return stack([self.adapt(x, support, self.inner_steps, keep=True) for support in eta])

    def outer(self, y: Tree, xi: Query) -> torch.Tensor:
        """The query loss of every task."""
        return torch.stack([self.query_loss(index(y, i), images) for i, images in enumerate(xi.images)])

    def closed_form(self, x: Tree, xi: Query, eta: torch.Tensor) -> tuple[torch.Tensor, Tree]:
        """Task by task, so that memory does not grow with their number: v = ∇f(y), then v − λ∇²L v, step by step."""
        total, losses = None, []
        for support, images in zip(eta, xi.images, strict=True):
            path = [x]
            slopes = []
            for _ in range(self.inner_steps):
                point = _variable(path[-1])
                slope = self._slope(point, support, create_graph=not self.first_order)
                slopes.append((point, slope))
                path.append(add_scaled(path[-1], map_leaves(torch.Tensor.detach, slope), -self.inner_rate))
            adapted = _variable(path[-1])
            loss = self.query_loss(adapted, images)
            v = unflatten_like(x, torch.autograd.grad(loss, leaves(adapted)))
            if not self.first_order:
                for point, slope in reversed(slopes):
                    curved = torch.autograd.grad(leaves(slope), leaves(point), leaves(v))
                    v = add_scaled(v, unflatten_like(v, curved), -self.inner_rate)
            total = v if total is None else add_scaled(total, v, 1.0)
            losses.append(loss.detach())
        return torch.stack(losses).mean(), map_leaves(lambda leaf: leaf / len(losses), total)

    def adapt(self, x: Tree, support: torch.Tensor, steps: int, keep: bool = False) -> Tree:
        """x after some steps on a support set; `keep` the history, to differentiate through it."""
        y = x if keep and leaves(x)[0].requires_grad else _variable(x)
        for _ in range(steps):
            slope = self._slope(y, support, create_graph=keep and not self.first_order)
            y = add_scaled(y, slope, -self.inner_rate)
            y = y if keep else _variable(y)
        return y

    def _slope(self, x: Tree, support: torch.Tensor, create_graph: bool) -> Tree:
        """∇L(x; support)."""
        labels = torch.arange(self.ways, device=support.device).repeat(len(support))
        with torch.enable_grad():
            loss = F.cross_entropy(self.network.apply(x, support.flatten(0, 1)), labels)
            return unflatten_like(x, torch.autograd.grad(loss, leaves(x), create_graph=create_graph))

    def query_loss(self, y: Tree, images: torch.Tensor) -> torch.Tensor:
        """L(y; query)."""
        return F.cross_entropy(self.network.apply(y, images), self._query_labels(images))

    def _query_labels(self, images: torch.Tensor) -> torch.Tensor:
        return torch.arange(self.ways, device=images.device).repeat_interleave(self.queries)

    # ---------------------------------------------------------------------------------- evaluation

    def size(self, data: Classes) -> int:
        """The number of classes."""
        return len(images_of(data))

    def outer_count(self, data: Classes) -> int | None:
        """The number of fixed tasks; those drawn afresh are too many to count on meeting one again."""
        return len(data.tasks) if isinstance(data, FixedTasks) else None

    def which(self, xi: Query) -> torch.Tensor:
        """The tasks' numbers."""
        return xi.task

    def episodes(self, data: Classes, tasks: int, shots: int, rng: torch.Generator) -> Episodes:
        """Fixed tasks from classes, to evaluate on."""
        xi = self.sample_outer(data, rng, (tasks,))
        return Episodes(xi, self.sample_inner(data, rng, xi, shots))


def _variable(x: Tree) -> Tree:
    return map_leaves(lambda leaf: leaf.detach().requires_grad_(), x)


def few_shot_judge(problem: MAML) -> Judge:
    """Return the judge that adapts a model to each task, as MAML's is at test time, and measures it on the queries."""

    def evaluate(x: Tree, test: Episodes) -> dict[str, Any]:
        """Query loss and accuracy after adaptation, mean over the tasks, with the half-width of its 95 % interval."""

        def one(task: int) -> tuple[torch.Tensor, torch.Tensor]:
            images = test.xi.images[task]
            with torch.no_grad():  # a worker thread does not inherit it
                logits = problem.network.apply(problem.adapt(x, test.eta[task], problem.test_steps), images)
            labels = problem._query_labels(images)
            return F.cross_entropy(logits, labels), (logits.argmax(-1) == labels).double().mean()

        with pool() as workers:
            losses, accuracies = zip(*workers.map(one, range(len(test.eta))), strict=True)
        accuracy = torch.stack(accuracies)
        return {
            LOSS.name: torch.stack(losses).mean(),
            ACCURACY.name: accuracy.mean(),
            ACCURACY.half_width().name: 1.96
            * accuracy.std(correction=min(1, len(accuracy) - 1))
            / len(accuracy) ** 0.5,
        }

    return Judge(evaluate, [ACCURACY, ACCURACY.half_width(), LOSS])


@with_plan(rounds=20, local_steps=10, outer_batch=1, inner_batch=1, evaluate_every=5)
def maml(
    ways: int = 5,
    queries: int = 15,
    inner_rate: float = 0.4,
    inner_steps: int = 1,
    first_order: bool = False,
    filters: int = 64,
    pooling: bool = False,
    tasks: int = 0,
    **where: Any,
) -> Task:
    """Learn to tell characters apart from few examples, by meta-learning (Section 5.2, Figures 2 and 3).

    Args:
        ways: classes in a task
        queries: query images of each class
        inner_rate: λ, the step size of the adaptation
        inner_steps: steps of the adaptation in training; evaluation takes 3
        first_order: leave out the second derivatives, which is not MAML but cheaper
        filters: of each of the network's four convolutions
        pooling: max-pooling instead of strided convolutions, about six times the cost
        tasks: how many fixed tasks a client has (for MOML, which keeps a state of each); 0 draws them afresh
        where: the data, see load_few_shot
    """
    require_count("filters", filters)
    require_count("tasks", tasks, least=0)
    network = partial(Conv4, ways, filters, pooling)
    problem = MAML(network, ways, queries, inner_rate, inner_steps=inner_steps, first_order=first_order)
    held = partial(fixed, tasks, ways) if tasks else freely
    return Task(problem, *load_few_shot(problem.episodes, held, **where), judge=few_shot_judge(problem))
