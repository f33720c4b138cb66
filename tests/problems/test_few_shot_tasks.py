"""Few-shot tasks, drawn anew or fixed, always of the characters of the client that trains on them."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fedcso.core.errors import FedcsoError, InvalidValue
from fedcso.core.problem import Lasting
from fedcso.core.streams import stream
from fedcso.problems import PROBLEMS
from fedcso.problems.few_shot_tasks import FixedTasks, fix_tasks, images_of
from tests.few_characters import OPTIONS, instead_of_glyphs
from tests.problems.test_maml import WAYS, classes, labels_in, maml

TASKS = 4
HELD = fix_tasks(TASKS, WAYS, classes(), stream(3, 0, 0))


# ----------------------------------------------------------------------------------------- fixed tasks


@given(number=st.integers(2, 8), tasks=st.integers(0, 6), ways=st.integers(2, 8), seed=st.integers(0, 100))
def test_a_fixed_task_is_made_of_different_classes(number, tasks, ways, seed):
    images = torch.zeros(number, 1, 1, 1, dtype=torch.uint8)
    if ways > number:
        with pytest.raises(FedcsoError, match=f"a client has {number} classes, too few for {ways}-way tasks"):
            fix_tasks(tasks, ways, images, stream(seed, 0, 0))
        return
    made = fix_tasks(tasks, ways, images, stream(seed, 0, 0)).tasks
    assert made.shape == (tasks, ways)
    assert all(len(set(task) & set(range(number))) == ways for task in made.tolist())
    assert torch.equal(made, fix_tasks(tasks, ways, images, stream(seed, 0, 0)).tasks)


def test_only_the_fixed_tasks_occur_and_all_of_them():
    xi = maml().sample_outer(HELD, stream(0, 0, 0), (50, 2))
    assert len({tuple(task) for task in HELD.tasks.tolist()}) == TASKS
    assert {tuple(task) for task in xi.classes.flatten(0, 1).tolist()} == {tuple(task) for task in HELD.tasks.tolist()}


def test_every_outer_sample_knows_which_task_it_is():
    problem = maml()
    xi = problem.sample_outer(HELD, stream(0, 0, 0), (50, 2))
    which = problem.which(xi)
    assert which.shape == (50, 2)
    assert torch.equal(HELD.tasks[which], xi.classes)
    shown, _ = labels_in(xi.images)
    assert torch.equal(shown, xi.classes.repeat_interleave(problem.queries, -1))


def test_a_fixed_task_asks_about_other_drawings_every_time():
    xi = maml().sample_outer(HELD._replace(tasks=HELD.tasks[:1]), stream(0, 0, 0), (20,))
    assert len({tuple(order) for order in xi.order[:, 0].tolist()}) > 1


def test_fixed_tasks_can_be_counted_and_those_drawn_afresh_can_not():
    problem = maml()
    assert problem.outer_count(HELD) == TASKS
    assert problem.outer_count(HELD.images) is None
    assert (problem.which(problem.sample_outer(HELD.images, stream(0, 0, 0), (9,))) == -1).all()


# ----------------------------------------------------------------------------------- one task per round


@pytest.mark.parametrize("data", [HELD.images, HELD])
def test_all_steps_of_a_round_have_the_same_tasks_with_other_drawings(data):
    xi = maml(one_task_per_round=True).sample_outer(data, stream(0, 0, 0), (3, 8))
    assert (xi.classes == xi.classes[0]).all()
    assert (xi.task == xi.task[0]).all()
    assert len({tuple(task) for task in xi.classes[0].tolist()}) > 1
    orders = {tuple(order) for order in xi.order[:, 0, 0].tolist()}
    assert len(orders) == 3
    shown, _ = labels_in(xi.images)
    assert torch.equal(shown, xi.classes.repeat_interleave(maml().queries, -1))


def test_another_round_has_another_task():
    problem = maml(one_task_per_round=True)
    rounds = [problem.sample_outer(HELD.images, stream(0, 0, number), (2, 1)).classes for number in range(5)]
    assert len({tuple(classes[0, 0].tolist()) for classes in rounds}) > 1


def test_models_are_evaluated_on_different_tasks_all_the_same():
    episodes = maml(one_task_per_round=True).episodes(HELD.images, 20, 1, stream(0, 0, 0))
    assert len({tuple(task) for task in episodes.xi.classes.tolist()}) > 1


def test_how_long_a_client_keeps_a_task():
    usual, per_round, one = maml(), maml(one_task_per_round=True), HELD._replace(tasks=HELD.tasks[:1])
    assert [usual.task_lasts(data) for data in (HELD.images, HELD, one)] == [Lasting.STEP, Lasting.STEP, Lasting.RUN]
    assert [per_round.task_lasts(data) for data in (HELD.images, HELD)] == [Lasting.ROUND, Lasting.ROUND]


# ----------------------------------------------------------------------------------------------- sizes


def test_fixing_tasks_leaves_a_client_as_large_as_it_was():
    assert maml().size(HELD) == maml().size(HELD.images) == len(HELD.images)
    assert torch.equal(images_of(HELD), HELD.images.unsqueeze(2))  # grey: one channel


def test_episodes_of_fixed_tasks_are_among_them():
    problem = maml()
    episodes = problem.episodes(HELD, 30, 2, stream(0, 0, 0))
    assert torch.equal(HELD.tasks[episodes.xi.task], episodes.xi.classes)
    shown, _ = labels_in(episodes.eta)
    assert torch.equal(shown, episodes.xi.classes.unsqueeze(1).expand(30, 2, WAYS))


# -------------------------------------------------------------------------------- whose tasks they are


def drawings_in(images):
    """Return the drawings as a set of their pixels."""
    return {drawing.tobytes() for drawing in (images.reshape(-1, 28 * 28) * 255).round().to(torch.uint8).numpy()}


def shown_in(episodes):
    return drawings_in(episodes.xi.images) | drawings_in(episodes.eta)


@pytest.mark.parametrize("name", ["maml", "pretraining"])
def test_everyone_is_measured_by_tasks_of_the_right_characters(monkeypatch, name):
    """Clients are measured on their own characters, the model as a whole on characters that no client trains on."""
    characters = instead_of_glyphs(monkeypatch)
    task = PROBLEMS[name](**OPTIONS | {"client_tasks": 20})
    shares = [data.inputs if name == "pretraining" else data / 255 for data in task.clients]
    every_drawing = drawings_in(characters.train / 255)
    assert sum(len(drawings_in(share)) for share in shares) == len(every_drawing)  # no drawing is at two clients
    for share, episodes in zip(shares, task.test.clients, strict=True):
        assert len(episodes.eta) == 20
        assert shown_in(episodes) <= drawings_in(share)
    assert shown_in(task.test.whole) <= drawings_in(characters.test / 255)
    assert shown_in(task.validation) <= drawings_in(characters.validation / 255)


def test_who_keeps_fixed_tasks_is_measured_by_these(monkeypatch):
    instead_of_glyphs(monkeypatch)
    task = PROBLEMS["maml"](**OPTIONS, tasks=2)
    for held, episodes in zip(task.clients, task.test.clients, strict=True):
        assert isinstance(held, FixedTasks)
        assert task.problem.outer_count(held) == 2
        assert torch.equal(held.tasks[episodes.xi.task], episodes.xi.classes)
    assert not torch.equal(task.clients[0].tasks, task.clients[1].tasks)


def test_fixing_tasks_does_not_change_who_holds_what(monkeypatch):
    instead_of_glyphs(monkeypatch)
    free, held = PROBLEMS["maml"](**OPTIONS), PROBLEMS["maml"](**OPTIONS, tasks=2)
    assert all(torch.equal(a, b.images) for a, b in zip(free.clients, held.clients, strict=True))
    assert free.digest() != held.digest()
    assert all(torch.equal(*pair) for pair in zip(free.test.whole.xi, held.test.whole.xi, strict=True))


@pytest.mark.parametrize("tasks", [-1, 1.5])
def test_the_number_of_tasks_is_checked(monkeypatch, tasks):
    instead_of_glyphs(monkeypatch)
    with pytest.raises(InvalidValue, match=f"tasks = {tasks}"):
        PROBLEMS["maml"](**OPTIONS, tasks=tasks)


@pytest.mark.parametrize("option", ["shots", "filters", "test_tasks", "validation_tasks", "client_tasks"])
@pytest.mark.parametrize("name", ["maml", "pretraining"])
def test_there_must_be_some_of_everything(monkeypatch, name, option):
    """Evaluation needs at least one task, and adaptation at least one sample."""
    instead_of_glyphs(monkeypatch)
    with pytest.raises(InvalidValue, match=f"{option} = 0"):
        PROBLEMS[name](**OPTIONS | {option: 0})
