"""What few-shot tasks are made of: a client's classes, tasks drawn from them, and fixed ones to keep or to test on."""

from typing import NamedTuple

import torch

from fedcso.errors import FedcsoError, require_count


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


def require_some(**counts: int) -> None:
    """There must be at least one of everything that is counted."""
    for name, count in counts.items():
        require_count(name, count)


def images_of(data: Classes) -> torch.Tensor:
    """The drawings of all classes."""
    return data.images if isinstance(data, FixedTasks) else data


def fixed(images: torch.Tensor, tasks: int, ways: int, rng: torch.Generator) -> FixedTasks:
    """Some tasks of a client's classes, once and for all."""
    require_count("ways", ways, least=2)
    if len(images) < ways:
        raise FedcsoError(f"a client has {len(images)} classes, too few for {ways}-way tasks")
    return FixedTasks(images, torch.rand(tasks, len(images), generator=rng).argsort(-1)[:, :ways])
