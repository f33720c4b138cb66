"""Few-shot learning: sampling inside the conditional distribution, and exact second-order gradients."""

from functools import partial

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from fedcso.algorithms import MOML
from fedcso.core.errors import FedcsoError, InvalidValue
from fedcso.core.estimator import sample
from fedcso.core.oracle import Oracle
from fedcso.core.plan import Plan
from fedcso.core.problem import Batch, split_steps
from fedcso.core.streams import stream
from fedcso.core.task import Task
from fedcso.core.topology import SERVER
from fedcso.core.tree import index, leaves, map_leaves, nbytes
from fedcso.core.workers import pool
from fedcso.engines import run, simulation, threads
from fedcso.engines.job import Job
from fedcso.estimators.plain import plain
from fedcso.models.conv4 import Conv4
from fedcso.problems import few_shot_judge
from fedcso.problems.few_shot_tasks import Classes, Query, fix_tasks
from fedcso.problems.maml import MAML, judge_adapted
from tests.command_line import read_csv, without_drawing
from tests.command_line import run as run_command
from tests.few_characters import ON_THE_COMMAND_LINE, few_characters, instead_of_glyphs
from tests.helpers import SETTINGS, assert_close, cases_for, differentiated, gap, runs_on_one_machine_only

SIDE, DRAWINGS, WAYS, QUERIES = 6, 8, 3, 4


class Tiny(nn.Module):
    """A network small enough for finite differences and curved enough for second derivatives."""

    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(SIDE * SIDE, 4)
        self.out = nn.Linear(4, WAYS)

    def forward(self, images):
        return self.out(torch.tanh(self.hidden(images.flatten(1))))


def maml(**options) -> MAML:
    return MAML(Tiny, ways=WAYS, queries=QUERIES, **options)


def classes(number: int = 5, seed: int = 0) -> torch.Tensor:
    """Return drawings whose pixels encode their class and number, so that they can be recognised."""
    rng = torch.Generator().manual_seed(seed)
    images = torch.randint(0, 256, (number, DRAWINGS, SIDE, SIDE), generator=rng, dtype=torch.uint8)
    images[..., 0, 0] = torch.arange(number).unsqueeze(1)
    images[..., 0, 1] = torch.arange(DRAWINGS)
    return images


def drawn(problem: MAML, b: int, m: int, data: Classes | None = None, seed: int = 0) -> Batch:
    (batch,) = split_steps(sample(problem, classes() if data is None else data, stream(seed, 0, 0), 1, b, m), 1)
    return batch


def in_double(x, batch: Batch):
    xi = batch.xi._replace(images=batch.xi.images.double())
    return map_leaves(torch.Tensor.double, x), Batch(xi, batch.eta.double())


def labels_in(images: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return class and number of drawings, decoded from their pixels."""
    marks = (images[..., 0, 0, :2] * 255).round().long()
    return marks[..., 0], marks[..., 1]


# -------------------------------------------------------------------------------------------- sampling


def test_support_samples_come_from_the_tasks_classes_and_never_from_its_query_set():
    shots = DRAWINGS - QUERIES
    batch = drawn(maml(), b=50, m=shots)
    for query, support, chosen in zip(batch.xi.images, batch.eta, batch.xi.classes, strict=True):
        asked, which = labels_in(query)
        assert torch.equal(asked, chosen.repeat_interleave(QUERIES))
        shown, used = labels_in(support)
        assert torch.equal(shown, chosen.expand(shots, WAYS))
        for way in range(WAYS):
            drawings = [*which[way * QUERIES : (way + 1) * QUERIES].tolist(), *used[:, way].tolist()]
            assert sorted(drawings) == list(range(DRAWINGS))


def test_the_classes_of_a_task_differ_and_all_classes_occur():
    chosen = drawn(maml(), b=200, m=1).xi.classes
    assert all(len(set(task)) == WAYS for task in chosen.tolist())
    assert set(chosen.flatten().tolist()) == set(range(5))


@pytest.mark.parametrize(
    ("data", "m", "words"),
    [
        (classes(WAYS - 1), 1, "2 classes, too few for 3-way"),
        (classes()[:, :QUERIES], 1, "a class has 4 drawings, and 4 query images leave none to learn from"),
        (classes(), DRAWINGS - QUERIES + 1, "inner_batch = 5 shots are too many"),
    ],
    ids=["classes", "drawings", "shots"],
)
def test_data_that_do_not_suffice_are_named(data, m, words):
    with pytest.raises(FedcsoError, match=words):
        drawn(maml(), b=1, m=m, data=data)


@pytest.mark.parametrize("option", [{"inner_rate": 0.0}, {"inner_steps": -1}, {"test_steps": 0}])
def test_settings_are_checked(option):
    with pytest.raises(InvalidValue, match=next(iter(option))):
        maml(**option)


# ------------------------------------------------------------------------------------------- gradients


@pytest.mark.parametrize("steps", [1, 2])
def test_the_meta_gradient_is_that_of_the_adapted_loss(steps):
    """Compare with finite differences of F̂ along random directions."""
    problem = maml(inner_steps=steps)
    x, batch = in_double(problem.init(stream(0, 0, 0)), drawn(problem, b=2, m=2))
    gradient = Oracle(problem, plain).grad(x, batch)
    rng, step = torch.Generator().manual_seed(1), 1e-5
    for _ in range(5):
        along = map_leaves(lambda leaf: torch.randn(leaf.shape, generator=rng, dtype=leaf.dtype), x)
        ahead, behind = (
            Oracle(problem, plain).value(map_leaves(lambda p, d, s=sign: p + s * step * d, x, along), batch).item()
            for sign in (1, -1)
        )
        slope = sum((g * d).sum() for g, d in zip(leaves(gradient), leaves(along), strict=True))
        assert abs((ahead - behind) / (2 * step) - slope) < 1e-8


@pytest.mark.parametrize("steps", [1, 3])
def test_the_cheap_way_is_the_same_as_differentiating_through_the_adaptation(steps):
    problem = maml(inner_steps=steps)
    x, batch = in_double(problem.init(stream(0, 0, 0)), drawn(problem, b=3, m=2))
    assert_close(Oracle(problem, plain).grad(x, batch), Oracle(problem, differentiated).grad(x, batch))


def test_first_order_is_another_direction_and_named_so():
    exact, cheap = maml(), maml(first_order=True)
    x, batch = in_double(exact.init(stream(0, 0, 0)), drawn(exact, b=2, m=2))
    assert gap(Oracle(exact, plain).grad(x, batch), Oracle(cheap, plain).grad(x, batch)) > 1e-3
    assert_close(Oracle(exact, plain).value(x, batch), Oracle(cheap, plain).value(x, batch))
    assert_close(Oracle(cheap, plain).grad(x, batch), Oracle(cheap, differentiated).grad(x, batch))


def test_moml_tracks_an_adapted_model_for_each_task():
    """Transcribe two steps with Hessians by autograd: z = (1/b) Σ_i (I − λ∇²L_i(x)) ∇L_i(y_i)."""
    problem, method = maml(), MOML(learning_rate=0.1, tracking=0.4, momentum=0.3)
    held = fix_tasks(2, WAYS, classes(), stream(0, 0, 0))
    oracle = Oracle(problem, plain)
    oracle.outer_count = 2
    x, first = in_double(problem.init(stream(0, 0, 0)), drawn(problem, b=3, m=2, data=held))
    _, second = in_double(x, drawn(problem, b=3, m=2, data=held, seed=1))
    state = method.receive(method.init(x).shared, None)

    shapes = map_leaves(lambda leaf: leaf.shape, x)

    def unflat(vector):
        parts = vector.split([leaf.numel() for leaf in leaves(x)])
        return {name: part.reshape(shapes[name]) for name, part in zip(x, parts, strict=True)}

    point, u, tracked = torch.cat([leaf.flatten() for leaf in leaves(x)]), None, {}
    for t, batch in enumerate((first, second)):
        state = method.step(state, oracle, batch, t)
        z, new = torch.zeros_like(point), {}
        for i, support, query in zip(batch.xi.task.tolist(), batch.eta, batch.xi.images, strict=True):

            def support_loss(vector, images=support):
                logits = problem.network.apply(unflat(vector), images.flatten(0, 1))
                return F.cross_entropy(logits, torch.arange(WAYS).repeat(len(images)))

            adapted = point - problem.inner_rate * torch.func.grad(support_loss)(point)
            new[i] = y = (1 - 0.4) * tracked[i] + 0.4 * adapted if i in tracked else adapted
            slope = torch.func.grad(lambda vector, images=query: problem.query_loss(unflat(vector), images))(y)
            hessian = torch.func.jacrev(torch.func.grad(support_loss))(point)
            z += (slope - problem.inner_rate * hessian @ slope) / len(batch.eta)
        tracked |= new
        u = z if t == 0 else (1 - 0.3) * u + 0.3 * z
        point = point - 0.1 * u
    assert_close(state.shared, {"x": unflat(point), "u": unflat(u)})
    for i, y in tracked.items():
        assert_close(index(state.local["y"], i), unflat(y))
    assert set(second.xi.task.tolist()) & set(first.xi.task.tolist())  # some were tracked


# ---------------------------------------------------------------------------------------------- memory


def most_kept(compute) -> int:
    """Return the largest number of bytes saved for differentiation at any one time."""
    now = most = 0

    class Kept:
        def __init__(self, tensor):
            nonlocal now, most
            self.tensor, self.bytes = tensor, nbytes(tensor)
            now += self.bytes
            most = max(most, now)

        def __del__(self):
            nonlocal now
            now -= self.bytes

    with torch.autograd.graph.saved_tensors_hooks(Kept, lambda kept: kept.tensor):
        compute()
    return most


@pytest.mark.parametrize("steps", [1, 2])
@pytest.mark.parametrize("first_order", [False, True])
def test_memory_does_not_grow_with_the_number_of_tasks(steps, first_order):
    """The closed form processes one task at a time; ordinary differentiation keeps the graphs of all tasks."""
    problem = MAML(partial(Conv4, WAYS, filters=4), ways=WAYS, queries=2, inner_steps=steps, first_order=first_order)
    x, held = problem.init(stream(0, 0, 0)), few_characters().train
    one, four = (drawn(problem, b, m=1, data=held) for b in (1, 4))
    assert (
        most_kept(lambda: Oracle(problem, plain).grad(x, four))
        == most_kept(lambda: Oracle(problem, plain).grad(x, one))
        > 0
    )
    ordinary = Oracle(problem, differentiated)
    assert most_kept(lambda: ordinary.grad(x, four)) > 3 * most_kept(lambda: ordinary.grad(x, one))


# ---------------------------------------------------------------------------------------------- running

FEDERATED = {
    name: one
    for name, one in SETTINGS.items()
    # Others need a problem of their own, or average after every step.
    if not runs_on_one_machine_only(one) and "few_points" in cases_for(one) and one.topology == SERVER
}
PLAN = Plan(rounds=2, local_steps=2, outer_batch=2, inner_batch=2, evaluate_every=2)


@pytest.mark.parametrize("algorithm", FEDERATED.values(), ids=FEDERATED)
def test_engines_agree(algorithm):
    problem, clients = maml(), [classes(4, seed) for seed in range(3)]
    if not algorithm.stacks:  # keeps a model for each task
        clients = [fix_tasks(3, WAYS, images, stream(0, n, 0)) for n, images in enumerate(clients)]
    test = problem.episodes(classes(), 5, 2, stream(1, 0, 0))
    task = Task(problem, clients, test=test, judge=judge_adapted(problem))
    one, other = (run(algorithm, task, PLAN, engine=engine) for engine in ("reference", "threads"))
    assert gap(one.shared, other.shared) == 0
    assert one.rows[-1]["accuracy"] == other.rows[-1]["accuracy"]
    assert gap(one.last, problem.init(stream(0, -2, 0))) > 0


def test_it_is_played_by_threads_because_it_differentiates_inside():
    assert simulation.choose(Job(SETTINGS["FCSG"], Task(maml(), [classes()]), Plan())) is threads.ENGINE


def test_an_engine_is_chosen_with_no_more_shots_than_the_plan_has():
    """Regression: with two shots it was tried out whether clients can be stacked, and the data had only one."""
    job = Job(SETTINGS["FCSG"], Task(maml(), [classes()[:, : QUERIES + 1]]), Plan(inner_batch=1))
    assert simulation.choose(job) is threads.ENGINE


def test_evaluation_adapts_and_reports_an_interval():
    """Classes differ in brightness: adaptation learns them, which random guessing does not."""
    problem = maml(inner_rate=1.0, test_steps=20)
    bright = torch.full((WAYS, DRAWINGS, SIDE, SIDE), 0, dtype=torch.uint8)
    for way in range(WAYS):
        bright[way, :, 2 * way : 2 * way + 2] = 255
    metrics = judge_adapted(problem).measure(
        problem.init(stream(0, 0, 0)), problem.episodes(bright, 10, 2, stream(0, 1, 0))
    )
    assert metrics["accuracy"] > 0.9
    assert 0 <= metrics["accuracy_interval"] < 0.3


def by_a_plain_loop(problem, x, episodes):
    losses, accuracies = [], []
    for query, support in zip(episodes.xi.images, episodes.eta, strict=True):
        labels = torch.arange(problem.ways).repeat_interleave(problem.queries)
        with torch.no_grad():
            logits = problem.network.apply(problem.adapt(x, support, problem.test_steps), query)
        losses.append(F.cross_entropy(logits, labels))
        accuracies.append((logits.argmax(1) == labels).double().mean())
    accuracy = torch.stack(accuracies)
    return {
        "loss": torch.stack(losses).mean(),
        "accuracy": accuracy.mean(),
        "accuracy_interval": 1.96 * accuracy.std() / len(accuracies) ** 0.5,
    }


@pytest.mark.parametrize("workers", [None, 1, 3])
def test_evaluation_is_that_of_a_plain_loop_whoever_does_it(monkeypatch, workers):
    """Results are exactly equal: no task depends on the tasks computed beside it."""
    problem = MAML(partial(Conv4, WAYS, filters=4), ways=WAYS, queries=2)
    x = map_leaves(lambda leaf: leaf + 0.01, problem.init(stream(0, 0, 0)))
    episodes = problem.episodes(few_characters().test, 7, 2, stream(1, 0, 0))
    monkeypatch.setattr(few_shot_judge, "pool", lambda: pool(workers))
    metrics = judge_adapted(problem).measure(x, episodes)
    expected = by_a_plain_loop(problem, x, episodes)
    assert list(metrics) == list(expected)
    for name, value in expected.items():
        assert metrics[name].item() == value.item()
        assert not metrics[name].requires_grad
    assert metrics["accuracy_interval"] > 0


def test_a_single_task_has_no_interval():
    problem = maml()
    episode = problem.episodes(classes(), 1, 2, stream(1, 0, 0))
    assert judge_adapted(problem).measure(problem.init(stream(0, 0, 0)), episode)["accuracy_interval"] == 0


def test_nothing_to_evaluate_on_is_no_mistake():
    assert judge_adapted(maml()).measure(maml().init(stream(0, 0, 0)), None) == {}


def test_clients_measure_at_home_through_the_command_line(monkeypatch, tmp_path):
    without_drawing(monkeypatch)
    instead_of_glyphs(monkeypatch)
    folder = run_command("run", "maml", *ON_THE_COMMAND_LINE, "--algorithm", "FCSG", "FCSG-M", out=tmp_path)
    metrics, at_home = read_csv(folder / "metrics.csv"), read_csv(folder / "clients.csv")
    names = ["train_loss", "loss", "accuracy", "accuracy_interval", "client_loss", "client_accuracy"]
    assert [name for name in metrics[0] if name in names] == names
    for method in ("FCSG", "FCSG-M"):
        evaluations = [row for row in metrics if row["algorithm"] == method]
        best = max(evaluations, key=lambda row: float(row["validation_accuracy"]))  # on validation tasks
        clients = [row for row in at_home if row["algorithm"] == method]
        assert [row["client"] for row in clients] == ["0", "1"]
        for metric in ("loss", "accuracy"):
            mean = sum(float(row[metric]) for row in clients) / len(clients)
            assert float(best[f"client_{metric}"]) == pytest.approx(mean, rel=1e-12)


def test_meta_training_helps():
    problem = MAML(partial(Conv4, ways=3, filters=8), ways=3, queries=3, inner_rate=0.4)
    rng = torch.Generator().manual_seed(0)
    prototypes = torch.rand(12, 1, 28, 28, generator=rng) > 0.5
    flips = torch.rand(12, DRAWINGS, 28, 28, generator=rng) > 0.85
    images = ((prototypes ^ flips) * 255).to(torch.uint8)
    test = problem.episodes(images[9:], 20, 1, stream(0, 5, 0))
    plan = Plan(rounds=3, local_steps=5, outer_batch=2, inner_batch=1, evaluate_every=3)
    task = Task(problem, [images[:3], images[3:6], images[6:9]], test=test, judge=judge_adapted(problem))
    trace = run(SETTINGS["FCSG-M"], task, plan, engine="threads")
    assert trace.rows[-1]["loss"] < trace.rows[0]["loss"]


def test_a_query_is_a_pytree_of_tensors():
    batch = drawn(maml(), b=2, m=1)
    assert isinstance(batch.xi, Query)
    assert [leaf.shape[0] for leaf in leaves(batch.xi)] == [2, 2, 2, 2]
