"""Model-agnostic meta-learning: an initial model that adapts to a task from a few labelled samples (Section 5.2).

    ξ = (task, its query set),   η | ξ ~ one support sample of each of the task's classes,   m = shots
    g_η(x, ξ) = x − λ ∇L(x; η)       one (or several) steps of adaptation to the task
    f_ξ(y)    = L(y; query set)

    min_x (1/N) Σ_n E_ξ L( x − λ ∇L(x; support); query )

The conditional distribution: support samples are drawn from the classes of the sampled task and never overlap with its
query set. L is the mean cross-entropy over a set; with batch norm it is a function of the whole set, so the mean over
the m support samples is taken inside L.

The exact meta-gradient needs no graph through the adapted point: with v = ∇f(y) it is v − λ ∇²L(x; support) v.
`first_order` leaves out the second term.

Reference: Finn, Abbeel, Levine, Model-Agnostic Meta-Learning for Fast Adaptation of Deep Networks, ICML 2017.
"""

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F

from fedcso.core.errors import FedcsoError, require_count, require_positive
from fedcso.core.judge import Judge
from fedcso.core.problem import Lasting, Problem
from fedcso.core.recommended import with_methods, with_plan
from fedcso.core.task import Task
from fedcso.core.tree import Tree, add_scaled, index, leaves, map_leaves, stack, unflatten_like
from fedcso.datasets.examples import Examples
from fedcso.models.conv4 import Conv4
from fedcso.models.functional import Functional, Model
from fedcso.problems.few_shot_classes import load_few_shot
from fedcso.problems.few_shot_judge import judge_tasks
from fedcso.problems.few_shot_model import FewShotModel
from fedcso.problems.few_shot_tasks import (
    Classes,
    Episodes,
    FixedTasks,
    Query,
    fix_tasks,
    images_of,
    keep_classes,
    require_classes,
)


@dataclass(frozen=True)
class MAML(Problem):
    """Few-shot classification; a client's data are its `Classes`, from which tasks are drawn."""

    model: Model
    ways: int = 5
    queries: int = 15
    """The number of query images of each class."""
    inner_rate: float = 0.4
    """λ, the step size of the adaptation."""
    inner_steps: int = 1
    """The number of adaptation steps in training; 0 for the tasks' ordinary losses."""
    test_steps: int = 3
    """The number of adaptation steps in evaluation."""
    first_order: bool = False
    """Leave out the second derivatives: a cheaper direction, which is not the gradient."""
    one_task_per_round: bool = False
    """Draw the same tasks for all local steps of a round, with new images in each step."""
    network: Functional = field(init=False, repr=False)

    def __post_init__(self) -> None:
        require_count("ways", self.ways, least=2)
        require_count("queries", self.queries)
        require_positive("inner_rate", self.inner_rate)
        require_count("inner_steps", self.inner_steps, least=0)
        require_count("test_steps", self.test_steps)
        object.__setattr__(self, "network", Functional(self.model))

    # ---------------------------------------------------------------------------------- sampling

    def init(self, rng: torch.Generator) -> dict[str, torch.Tensor]:
        """Return the network's initial weights, see `Model`."""
        return self.network.init(rng)

    def sample_outer(self, data: Classes, rng: torch.Generator, shape: tuple[int, ...]) -> Query:
        """Draw tasks of different classes, and the query images of each class."""
        return self._draw(data, rng, shape, (1, *shape[1:]) if self.one_task_per_round else shape)

    def _draw(self, data: Classes, rng: torch.Generator, shape: tuple[int, ...], tasks: tuple[int, ...]) -> Query:
        """Draw as many tasks as `tasks` says, expanded to `shape`, and query images for each."""
        held = images_of(data)
        count, drawings = held.shape[:2]
        require_classes(held, self.ways)
        if drawings <= self.queries:
            raise FedcsoError(
                f"a class has {drawings} drawings, and {self.queries} query images leave none to learn from: "
                "use fewer queries"
            )
        # argsort of random numbers draws without replacement, for all tasks at once.
        if isinstance(data, FixedTasks):
            task = torch.randint(len(data.tasks), tasks, generator=rng).expand(shape)
            classes = data.tasks[task]
        else:
            task = torch.full(shape, -1)
            drawn = torch.rand(*tasks, count, generator=rng).argsort(-1)[..., : self.ways]
            classes = drawn.expand(*shape, -1)
        order = torch.rand(*shape, self.ways, drawings, generator=rng).argsort(-1)
        images = held[classes.unsqueeze(-1), order[..., : self.queries]]
        return Query(task, classes, order, scale_pixels(images.flatten(len(shape), len(shape) + 1)))

    def sample_inner(self, data: Classes, rng: torch.Generator, xi: Query, m: int) -> torch.Tensor:
        """Draw m shots: for each class of a task, m drawings that are not in the query set."""
        rest = xi.order[..., self.queries :]
        if m > rest.shape[-1]:
            raise FedcsoError(
                f"inner_batch = {m} shots are too many: with {self.queries} query images, a class has only "
                f"{rest.shape[-1]} drawings left"
            )
        # `order` is random, so its next m drawings are a random choice.
        images = images_of(data)[xi.classes.unsqueeze(-1), rest[..., :m]]
        return scale_pixels(images.transpose(-4, -5))  # (…, m, ways, channels, height, width)

    # ---------------------------------------------------------------------------------- f and g

    def inner(self, x: Tree, xi: Query, eta: torch.Tensor) -> Tree:
        """Return the adapted weights of every task, with their graph (for methods that track them)."""
        return stack([self.adapt(x, support, self.inner_steps, keep=True) for support in eta])

    def outer(self, y: Tree, xi: Query) -> torch.Tensor:
        """Return the query loss of every task."""
        return torch.stack([self.query_loss(index(y, i), images) for i, images in enumerate(xi.images)])

    def closed_form(self, x: Tree, xi: Query, eta: torch.Tensor) -> tuple[torch.Tensor, Tree]:
        """Return the mean loss and gradient: v = ∇f(y), then v ← v − λ∇²L v for each step, in reverse order.

        Tasks are processed one by one, so that memory does not grow with their number.
        """
        total, losses = None, []
        for support, images in zip(eta, xi.images, strict=True):
            shown = self.label_support(support)
            path = [x]
            slopes = []
            for _ in range(self.inner_steps):
                point = _variable(path[-1])
                slope = self._slope(point, shown, create_graph=not self.first_order)
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
        """Return x after some steps on a support set; `keep` the graph, to differentiate through the steps."""
        return self.adapt_to(x, self.label_support(support), steps, keep)

    def adapt_to(self, x: Tree, support: Examples, steps: int, keep: bool = False) -> Tree:
        """Return x after some steps on labelled images, of which classes may have different numbers."""
        y = x if keep and leaves(x)[0].requires_grad else _variable(x)
        for _ in range(steps):
            slope = self._slope(y, support, create_graph=keep and not self.first_order)
            y = add_scaled(y, slope, -self.inner_rate)
            y = y if keep else _variable(y)
        return y

    def label_support(self, support: torch.Tensor) -> Examples:
        """Return a support set (m, ways, channels, height, width) as labelled images."""
        return Examples(support.flatten(0, 1), torch.arange(self.ways, device=support.device).repeat(len(support)))

    def _slope(self, x: Tree, support: Examples, create_graph: bool) -> Tree:
        """Return ∇L(x; support)."""
        with torch.enable_grad():
            loss = F.cross_entropy(self.network.apply(x, support.inputs), support.labels)
            return unflatten_like(x, torch.autograd.grad(loss, leaves(x), create_graph=create_graph))

    def query_loss(self, y: Tree, images: torch.Tensor) -> torch.Tensor:
        """Return L(y; query)."""
        return F.cross_entropy(self.network.apply(y, images), self.query_labels(images))

    def query_labels(self, images: torch.Tensor) -> torch.Tensor:
        """Return the labels of query images, which come class by class."""
        return torch.arange(self.ways, device=images.device).repeat_interleave(self.queries)

    def inner_samples(self, b: int, m: int) -> int:
        """Return b·m, or 0 if there is no adaptation."""
        return b * m if self.inner_steps else 0

    # -------------------------------------------------------------------------------------- data

    def size(self, data: Classes) -> int:
        """Return the number of classes."""
        return len(images_of(data))

    def outer_count(self, data: Classes) -> int | None:
        """Return the number of fixed tasks; None if a new task is drawn every time."""
        return len(data.tasks) if isinstance(data, FixedTasks) else None

    def task_lasts(self, data: Classes) -> Lasting:
        """Return how long a client keeps a task: for the whole run if it has only one."""
        if self.outer_count(data) == 1:
            return Lasting.RUN
        return Lasting.ROUND if self.one_task_per_round else Lasting.STEP

    def which(self, xi: Query) -> torch.Tensor:
        """Return the indices of the tasks."""
        return xi.task

    def episodes(self, data: Classes, tasks: int, shots: int, rng: torch.Generator) -> Episodes:
        """Draw tasks to evaluate on."""
        xi = self._draw(data, rng, (tasks,), (tasks,))
        return Episodes(xi, self.sample_inner(data, rng, xi, shots))


def build_network(model: FewShotModel, ways: int) -> Model:
    """Return the network of a few-shot model, with a last layer for so many classes."""
    return partial(Conv4, ways, model.filters, model.pooling, model.form.depth)


def scale_pixels(images: torch.Tensor) -> torch.Tensor:
    """Return bytes as numbers from 0 to 1."""
    return images.float() / 255


def _variable(x: Tree) -> Tree:
    return map_leaves(lambda leaf: leaf.detach().requires_grad_(), x)


def judge_adapted(problem: MAML) -> Judge:
    """Return a judge that adapts a model to each task by the steps of evaluation, and measures it on the queries."""

    def classify(x: Tree, support: torch.Tensor, queries: torch.Tensor) -> torch.Tensor:
        return problem.network.apply(problem.adapt(x, support, problem.test_steps), queries)

    return judge_tasks(classify, problem.query_labels)


@with_methods(
    "FCSG-M", "FedAdam", learning_rate="cosine(1)", momentum=0.1, server_rate="cosine(0.003)", adaptivity=1e-6
)
@with_plan(rounds=200, local_steps=1, outer_batch=1, inner_batch=1, evaluate_every=50)
def maml(
    ways: int = 5,
    queries: int = 15,
    inner_rate: float = 0.4,
    inner_steps: int = 1,
    first_order: bool = False,
    filters: int = 64,
    pooling: bool = False,
    tasks: int = 0,
    one_task_per_round: bool = False,
    **where: Any,
) -> Task:
    """Learn to tell classes of images apart from few examples, by meta-learning (Section 5.2, Figures 2 and 3).

    Args:
        ways: number of classes in a task
        queries: number of query images of each class
        inner_rate: λ, the step size of the adaptation
        inner_steps: number of adaptation steps in training, 0 for none (Reptile); evaluation takes 3
        first_order: leave out the second derivatives, which is cheaper, but not exact MAML
        filters: number of filters of each of the network's four convolutions
        pooling: use max-pooling instead of strided convolutions, at about six times the cost
        tasks: number of fixed tasks per client (1 for Per-FedAvg; MOML keeps a state for each); 0 to draw new ones
            every time
        one_task_per_round: draw one task for all local steps of a round, as Reptile needs, instead of one for each
        where: the data, see load_few_shot
    """
    require_count("tasks", tasks, least=0)
    classes = load_few_shot(**where)
    model = FewShotModel(ways, inner_rate, MAML.test_steps, classes.source.form, filters, pooling)
    problem = MAML(
        build_network(model, ways),
        ways,
        queries,
        inner_rate,
        inner_steps=inner_steps,
        first_order=first_order,
        one_task_per_round=one_task_per_round,
    )
    classes.require_enough(ways, queries)
    held = partial(fix_tasks, tasks, ways) if tasks else keep_classes
    return Task(
        problem,
        *classes.draw(problem.episodes, held),
        judge=judge_adapted(problem),
        names=classes.names,
        notes=classes.source.notes,
        files=model.files(),
    )
