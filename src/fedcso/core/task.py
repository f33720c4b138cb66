"""A task: a problem, the clients' data, and how models are judged."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
import torch
from torch import nn

from fedcso.core.crowd import sample_numbers, sample_of
from fedcso.core.errors import FedcsoError
from fedcso.core.initial_weights import InitialWeights
from fedcso.core.judge import Judge
from fedcso.core.problem import Problem
from fedcso.core.tree import Tree


@runtime_checkable
class Lazy(Protocol):
    """Data that are computed or read when they are needed."""

    def materialise(self) -> torch.Tensor:
        """Return the data as one tensor."""


@dataclass(frozen=True)
class Task:
    """What is minimised, on which clients' data, and how the result is judged.

    With a method and a plan it is all that a run needs. The command line makes tasks by functions whose keyword
    arguments become options (`fedcso.problems.PROBLEMS`, or your own as `path.py:name`).
    """

    problem: Problem
    clients: Sequence[Any]
    """The training data of each client, in any form that the problem's `sample_outer` understands; of very many clients
    a `fedcso.Crowd`."""
    test: Any = None
    """Held-out data for the judge; used to report, never to choose settings or models."""
    validation: Any = None
    """Held-out data by which settings and models are chosen (`fedcso.engines.choice`)."""
    judge: Judge = Judge()  # noqa: RUF009 - frozen
    """What is measured on held-out data, and the metric by which models are chosen."""
    names: Sequence[str] = ()
    """The clients' names; their numbers if empty."""
    notes: Sequence[str] = ()
    """Remarks about the data that users should see."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Files to export with a model, by name."""
    weights: Literal["uniform", "size"] = "uniform"
    """The weights of clients in averages, unless a plan says otherwise."""
    stands_for: int = 1
    """The number of clients whose data each client has; it draws as many samples as they would together."""
    start: InitialWeights | None = None
    """Weights to start from instead of the problem's own x_0, see `starting_from`."""

    def __post_init__(self) -> None:
        for name in ("evaluate", "select", "ranking", "deliver"):
            if hasattr(self.problem, name):
                raise FedcsoError(
                    f"{type(self.problem).__name__}.{name} is no longer part of a problem: pass it to the task, as in "
                    "Task(problem, clients, test=…, judge=fedcso.Judge(evaluate=…, select=…))"
                )

    def starting_from(self, given: InitialWeights | nn.Module | Tree, fresh_last_layer: bool = False) -> "Task":
        """Return the task with given weights to start from: a network, its weights by name, or a complete x_0.

        Weights of a network can come from another problem: those of a cross-entropy run, for AUPRC. With
        `fresh_last_layer`, the last layer of the network is the problem's own, and differs between seeds.
        """
        return replace(self, start=InitialWeights.of(given, fresh_last_layer))

    def starting_point(self, rng: torch.Generator) -> Tree:
        """Return x_0, with the given weights if there are any, projected onto X."""
        x = self.problem.init(rng)
        x = x if self.start is None else self.start.put_into(x, self.problem.weights_at)
        return x if self.problem.project is None else self.problem.project(x)

    @property
    def validates(self) -> bool:
        """True if validation data decide which model is chosen."""
        return self.validation is not None and self.judge.select is not None

    def for_tuning(self) -> "Task":
        """Return the task without its test data: settings are chosen by validation data only."""
        return replace(self, test=None)

    def for_reporting(self) -> "Task":
        """Return the task without its validation data, for final runs in which nothing is chosen."""
        return replace(self, validation=None)

    def without_held_out(self) -> "Task":
        """Return the task without test and validation data."""
        return replace(self, test=None, validation=None)

    @property
    def sample(self) -> Sequence[int]:
        """The numbers of the clients that are looked at where all would have to be: of a crowd some, otherwise all."""
        return sample_numbers(self.clients)

    @cached_property
    def seen(self) -> Sequence[Any]:
        """The data of these clients."""
        return sample_of(self.clients)

    @cached_property
    def able(self) -> Sequence[int]:
        """The numbers of the clients that have training data."""
        idle = [n for n, data in zip(self.sample, self.seen, strict=True) if not self.problem.trains(data)]
        if not idle:
            return range(len(self.clients))
        if len(self.seen) < len(self.clients):
            raise FedcsoError(f"client {idle[0]} has no training data: leave clients without data out of a crowd")
        return sorted(set(self.sample) - set(idle))

    def remark(self) -> str:
        """Return what users should know of a crowd; empty for other clients."""
        if len(self.seen) == len(self.clients):
            return ""
        alike = all(data is self.seen[0] for data in self.seen)
        return (
            f"{'' if alike else 'F, '}the digest of the data and the tables of clients are those of {len(self.seen):,} "
            f"of the {len(self.clients):,} clients, drawn at random"
        )

    def digest(self) -> str:
        """Return a fingerprint of the data and their split, to tell runs on different data apart."""
        more = [len(self.clients)] if len(self.seen) < len(self.clients) else []
        return fingerprint(list(self.seen), self.test, self.validation, *more)


def fingerprint(*parts: Any) -> str:
    """Return a short digest of the content of some values, which is the same in every process."""
    digest = hashlib.sha256()
    for part in parts:
        _update(digest, part)
    return digest.hexdigest()[:16]


def _update(digest: Any, value: Any) -> None:
    """Add the content of a value, whatever its type, in a way that is the same in every process."""
    value = value.materialise() if isinstance(value, Lazy) else value
    if isinstance(value, torch.Tensor):
        digest.update(f"{value.dtype}{tuple(value.shape)}".encode())
        if value.numel():  # an empty tensor can't be viewed as bytes
            digest.update(value.detach().cpu().contiguous().flatten().view(torch.uint8).numpy())
    elif isinstance(value, np.ndarray) and value.dtype != object:
        digest.update(f"{value.dtype}{value.shape}".encode())
        digest.update(np.ascontiguousarray(value).tobytes())
    elif isinstance(value, dict):
        for key, child in value.items():
            digest.update(str(key).encode())
            _update(digest, child)
    elif isinstance(value, list | tuple | np.ndarray):
        digest.update(f"[{len(value)}".encode())
        for child in value:
            _update(digest, child)
    elif hasattr(value, "__dict__") and not callable(value):
        digest.update(type(value).__qualname__.encode())
        _update(digest, vars(value))
    else:
        digest.update(repr(value).encode())
