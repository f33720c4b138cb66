"""What few-shot tasks are made of: a client's classes, tasks drawn from them, and fixed ones to keep or to test on."""

from collections.abc import Callable
from typing import NamedTuple

import torch

from fedcso.core.errors import FedcsoError, require_count
from fedcso.core.judge import ByClient
from fedcso.core.streams import DATA, stream
from fedcso.datasets import load_characters
from fedcso.datasets.characters import split_classes, with_rotations


class FixedTasks(NamedTuple):
    """A client's classes, and the only tasks it makes of them: (tasks, ways) numbers of classes."""

    images: torch.Tensor
    tasks: torch.Tensor


Classes = torch.Tensor | FixedTasks
"""A client's data: its classes as uint8 images (classes, drawings, height, width), or fixed tasks made of them."""


class Query(NamedTuple):
    """ξ: the classes of a task, the order in which their drawings are used, and its query images."""

    task: torch.Tensor
    """(…), its number among the client's fixed tasks; −1 for a task drawn afresh."""
    classes: torch.Tensor
    """(…, ways), numbers of the client's classes."""
    order: torch.Tensor
    """(…, ways, drawings): the first are the query set, the support samples come from the rest."""
    images: torch.Tensor
    """(…, ways·queries, 1, height, width), class by class."""


class Episodes(NamedTuple):
    """Fixed tasks to evaluate on: along the first axis, each with its query and its support images."""

    xi: Query
    eta: torch.Tensor


def images_of(data: Classes) -> torch.Tensor:
    """The drawings of all classes."""
    return data.images if isinstance(data, FixedTasks) else data


def fixed(tasks: int, ways: int, images: torch.Tensor, rng: torch.Generator) -> FixedTasks:
    """Some tasks of a client's classes, once and for all."""
    require_count("ways", ways, least=2)
    if len(images) < ways:
        raise FedcsoError(f"a client has {len(images)} classes, too few for {ways}-way tasks")
    return FixedTasks(images, torch.rand(tasks, len(images), generator=rng).argsort(-1)[:, :ways])


def freely(images: torch.Tensor, rng: torch.Generator) -> Classes:
    """Classes of which tasks are drawn afresh."""
    return images


class FewShot(NamedTuple):
    """Characters spread over clients, and tasks to evaluate on."""

    clients: list[Classes]
    """Each one's training classes."""
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
    """Characters, held by clients in the form that `held` gives them, and tasks, which `episodes` makes of them.

    Args:
        episodes: (classes, tasks, shots, rng) to tasks
        held: (images, rng) to what a client has
        data: glyphs (embedded) or omniglot (see: fedcso data get omniglot)
        clients: N, over which the training characters are spread disjointly
        shots: support samples of each class when evaluated; those in training are the plan's inner_batch
        rotations: characters turned by 90, 180 and 270 degrees as further training classes
        test_tasks: tasks of unseen characters that are reported on
        validation_tasks: tasks of other unseen characters, by which settings are chosen
        client_tasks: tasks of its own training characters on which each client measures the model
        data_seed: decides who holds which characters, and the tasks to evaluate on
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
