"""Few-shot tasks: a client's classes, tasks drawn from them, and fixed tasks to train on or to evaluate on."""

from collections.abc import Callable
from typing import NamedTuple

import torch

from fedcso.core.errors import FedcsoError, require_count
from fedcso.core.judge import ByClient
from fedcso.core.streams import DATA, stream
from fedcso.datasets import load_characters
from fedcso.datasets.characters import split_classes, with_rotations


class FixedTasks(NamedTuple):
    """A client's classes, and the only tasks it draws from them: indices of classes with shape (tasks, ways)."""

    images: torch.Tensor
    tasks: torch.Tensor


Classes = torch.Tensor | FixedTasks
"""A client's data: its classes as uint8 images (classes, drawings, height, width), or fixed tasks made of them."""


class Query(NamedTuple):
    """ξ: the classes of a task, the order in which their drawings are used, and the query images."""

    task: torch.Tensor
    """(…): the index among the client's fixed tasks; −1 if tasks are not fixed."""
    classes: torch.Tensor
    """(…, ways): indices of the client's classes."""
    order: torch.Tensor
    """(…, ways, drawings): the first drawings are the query set, the support samples come from the rest."""
    images: torch.Tensor
    """(…, ways·queries, 1, height, width): the query images, class by class."""


class Episodes(NamedTuple):
    """Fixed tasks to evaluate on, along the first axis of all leaves: query images and support images."""

    xi: Query
    eta: torch.Tensor


def images_of(data: Classes) -> torch.Tensor:
    """Return the drawings of all classes."""
    return data.images if isinstance(data, FixedTasks) else data


def require_classes(images: torch.Tensor, ways: int) -> None:
    """Raise `FedcsoError` if a client has too few classes for a task."""
    if len(images) < ways:
        raise FedcsoError(
            f"a client has {len(images)} classes, too few for {ways}-way tasks: use fewer clients or fewer ways"
        )


def fix_tasks(tasks: int, ways: int, images: torch.Tensor, rng: torch.Generator) -> FixedTasks:
    """Draw the tasks that a client will train on throughout; raise `FedcsoError` if it has too few classes."""
    require_count("ways", ways, least=2)
    require_classes(images, ways)
    return FixedTasks(images, torch.rand(tasks, len(images), generator=rng).argsort(-1)[:, :ways])


def keep_classes(images: torch.Tensor, rng: torch.Generator) -> Classes:
    """Return the classes unchanged, so that a new task is drawn every time."""
    return images


class FewShot(NamedTuple):
    """Characters divided among clients, and tasks to evaluate on."""

    clients: list[Classes]
    """The training classes of each client."""
    test: ByClient
    validation: Episodes


def load_few_shot(
    episodes: Callable[[Classes, int, int, torch.Generator], Episodes],
    held: Callable[[torch.Tensor, torch.Generator], Classes],
    data: str = "glyphs",
    clients: int = 16,
    shots: int = 1,
    rotations: bool = False,
    test_tasks: int = 600,
    validation_tasks: int = 100,
    client_tasks: int = 10,
    data_seed: int = 0,
) -> FewShot:
    """Return characters divided among clients, and tasks to evaluate on.

    Args:
        episodes: (classes, tasks, shots, rng) → tasks
        held: (images, rng) → a client's data
        data: glyphs (embedded) or omniglot (see: fedcso data get omniglot)
        clients: N, the number of clients among which the training characters are divided
        shots: support samples of each class in evaluation; in training they are inner_batch
        rotations: add characters rotated by 90, 180 and 270 degrees as further training classes
        test_tasks: number of test tasks, of unseen characters
        validation_tasks: number of validation tasks, of other unseen characters, by which settings are chosen
        client_tasks: number of tasks of each client's training characters on which it evaluates the model
        data_seed: seed of the division of characters among clients, and of the tasks to evaluate on
    """
    counts = {"shots": shots, "test_tasks": test_tasks, "validation_tasks": validation_tasks}
    for name, count in (counts | {"client_tasks": client_tasks}).items():
        require_count(name, count)
    characters = load_characters(data)
    train = with_rotations(characters.train) if rotations else characters.train
    rng = stream(data_seed, DATA, 2)
    shares = [held(images, rng) for images in split_classes(train, clients, data_seed)]
    return FewShot(
        shares,
        test=ByClient(
            episodes(characters.test, test_tasks, shots, stream(data_seed, DATA, 0)),
            [episodes(share, client_tasks, shots, rng) for share in shares],
        ),
        validation=episodes(characters.validation, validation_tasks, shots, stream(data_seed, DATA, 1)),
    )
