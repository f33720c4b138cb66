"""A problem together with its data: all that a run needs besides a method and a plan."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
import torch

from fedcso.core.errors import FedcsoError
from fedcso.core.judge import Judge
from fedcso.core.problem import Problem

Maker = TypeVar("Maker", bound=Callable[..., "Task"])


@runtime_checkable
class Lazy(Protocol):
    """Data that stand elsewhere until they are asked for."""

    def materialise(self) -> torch.Tensor:
        """Return all of them as one tensor."""


@dataclass(frozen=True)
class Task:
    """What is minimised, over which clients' data, and what it is judged by.

    The command line takes a task from a function, whose keyword arguments become options
    (`fedcso.problems.PROBLEMS`, or your own as `path.py:name`).
    """

    problem: Problem
    clients: Sequence[Any]
    """The training data of each client, in whatever form the problem's `sample_outer` takes."""
    test: Any = None
    """Held-out data for the judge; looked at only to report, never to choose."""
    validation: Any = None
    """Held-out data by which settings and models are chosen (`fedcso.engines.choice`)."""
    judge: Judge = Judge()  # noqa: RUF009 - frozen
    """What is measured on held-out data, and by which metric models are chosen."""
    names: Sequence[str] = ()
    """What the clients are called, if not by number."""
    notes: Sequence[str] = ()
    """What a user should know of the data."""
    files: Mapping[str, str] = field(default_factory=dict)
    """What belongs beside an exported model: name and content."""

    def __post_init__(self) -> None:
        for name in ("evaluate", "select", "ranking", "deliver"):
            if hasattr(self.problem, name):
                raise FedcsoError(
                    f"{type(self.problem).__name__}.{name} is not part of a problem any more: judging belongs to the "
                    "task. Write Task(problem, clients, test=…, judge=fedcso.Judge(evaluate=…, select=…))"
                )

    def for_tuning(self) -> "Task":
        """Return the task without its test data: settings are chosen on validation data alone."""
        return replace(self, test=None)

    def for_reporting(self) -> "Task":
        """Return the task without its validation data, for runs in which nothing is chosen any more."""
        return replace(self, validation=None)

    def without_held_out(self) -> "Task":
        """Return the task without held-out data: nothing is measured on any."""
        return replace(self, test=None, validation=None)

    def digest(self) -> str:
        """A fingerprint of all data and how it is split: runs on different data are not to be compared."""
        fingerprint = hashlib.sha256()
        for part in (list(self.clients), self.test, self.validation):
            _feed(fingerprint, part)
        return fingerprint.hexdigest()[:16]


def _feed(fingerprint: Any, value: Any) -> None:
    """Add a value's content, whatever it is made of, so that it is the same in every process."""
    value = value.materialise() if isinstance(value, Lazy) else value
    if isinstance(value, torch.Tensor):
        fingerprint.update(f"{value.dtype}{tuple(value.shape)}".encode())
        if value.numel():  # an empty one can't be viewed as bytes
            fingerprint.update(value.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes())
    elif isinstance(value, np.ndarray) and value.dtype != object:
        fingerprint.update(f"{value.dtype}{value.shape}".encode())
        fingerprint.update(np.ascontiguousarray(value).tobytes())
    elif isinstance(value, dict):
        for key, child in value.items():
            fingerprint.update(str(key).encode())
            _feed(fingerprint, child)
    elif isinstance(value, list | tuple | np.ndarray):
        fingerprint.update(f"[{len(value)}".encode())
        for child in value:
            _feed(fingerprint, child)
    elif hasattr(value, "__dict__") and not callable(value):
        fingerprint.update(type(value).__qualname__.encode())
        _feed(fingerprint, vars(value))
    else:
        fingerprint.update(repr(value).encode())


def with_plan(**defaults: Any) -> Callable[[Maker], Maker]:
    """For a task function whose problem wants other sizes than `Plan`'s own: what the command line starts from."""

    def mark(maker: Maker) -> Maker:
        vars(maker)["plan_defaults"] = defaults
        return maker

    return mark


def plan_defaults(maker: Callable[..., Task]) -> dict[str, Any]:
    """The sizes that a task function wants."""
    return dict(getattr(maker, "plan_defaults", {}))
