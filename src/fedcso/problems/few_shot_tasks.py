"""Few-shot tasks: a client's classes, tasks drawn from them, and fixed tasks to train on or to evaluate on."""

from typing import NamedTuple

import torch

from fedcso.core.errors import FedcsoError, require_count
from fedcso.datasets.characters import with_channels


class FixedTasks(NamedTuple):
    """A client's classes, and the only tasks it draws from them: indices of classes with shape (tasks, ways)."""

    images: torch.Tensor
    tasks: torch.Tensor


Classes = torch.Tensor | FixedTasks
"""A client's data: its classes as uint8 images, or fixed tasks made of them.

The axes of images are (classes, drawings, height, width), in colour (classes, drawings, 3, height, width).
"""


class Query(NamedTuple):
    """ξ: the classes of a task, the order in which their drawings are used, and the query images."""

    task: torch.Tensor
    """(…): the index among the client's fixed tasks; −1 if tasks are not fixed."""
    classes: torch.Tensor
    """(…, ways): indices of the client's classes."""
    order: torch.Tensor
    """(…, ways, drawings): the first drawings are the query set, the support samples come from the rest."""
    images: torch.Tensor
    """(…, ways·queries, channels, height, width): the query images, class by class."""


class Episodes(NamedTuple):
    """Fixed tasks to evaluate on, along the first axis of all leaves: query images and support images."""

    xi: Query
    eta: torch.Tensor


def images_of(data: Classes) -> torch.Tensor:
    """Return the drawings of all classes, with an axis of channels."""
    return with_channels(data.images if isinstance(data, FixedTasks) else data)


def require_classes(images: torch.Tensor, ways: int, who: str = "a client") -> None:
    """Raise `FedcsoError` if a client has too few classes for a task."""
    if len(images) < ways:
        raise FedcsoError(
            f"{who} has {len(images)} classes, too few for {ways}-way tasks: use fewer clients, fewer ways or more "
            "classes"
        )


def fix_tasks(tasks: int, ways: int, images: torch.Tensor, rng: torch.Generator) -> FixedTasks:
    """Draw the tasks that a client will train on throughout; raise `FedcsoError` if it has too few classes."""
    require_count("ways", ways, least=2)
    require_classes(images, ways)
    return FixedTasks(images, torch.rand(tasks, len(images), generator=rng).argsort(-1)[:, :ways])


def keep_classes(images: torch.Tensor, rng: torch.Generator) -> Classes:
    """Return the classes unchanged, so that a new task is drawn every time."""
    return images
