"""Mistakes a user can make, and how they are told: the field, the value, what is allowed."""

from collections.abc import Callable, Iterable
from difflib import get_close_matches
from typing import Any

import torch

Check = Callable[[Any], Any]


class FedcsoError(Exception):
    """Something the user can put right; the message says what and how."""


class InvalidValue(FedcsoError, ValueError):
    """A field holds a value that is not allowed."""

    def __init__(self, field: str, value: object, allowed: str):
        self.field, self.value, self.allowed = field, value, allowed
        super().__init__(f"{field} = {value!r} is not allowed; it must be {allowed}")


class UnknownName(FedcsoError, KeyError):
    """A name that is in none of our tables, with the nearest ones that are."""

    def __init__(self, kind: str, name: str, known: Iterable[str]):
        known = sorted(known)
        close = get_close_matches(name, known, n=3)
        hint = f"; did you mean {' or '.join(close)}?" if close else ""
        super().__init__(f"unknown {kind} {name!r}{hint} (known: {', '.join(known)})")

    def __str__(self) -> str:  # a KeyError would put the message into quotes
        return str(self.args[0])


class NonFinite(FedcsoError, FloatingPointError):
    """A loss, gradient or update stopped being a finite number; says where and when."""

    def __init__(self, quantity: str, client: int, round: int, step: int, seed: int):
        self.quantity, self.client, self.round, self.step, self.seed = quantity, client, round, step, seed
        super().__init__(
            f"non-finite {quantity} at client {client}, round {round}, step {step} (seed {seed}); "
            "try a smaller learning rate, or on_nonfinite = 'drop' to leave such clients out of a round"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.quantity, self.client, self.round, self.step, self.seed)


class LeftOut(FedcsoError):
    """A client's part of a round was not used; says which, when and why."""

    def __init__(self, client: int, round: int, reason: str):
        self.client, self.round, self.reason = client, round, reason
        super().__init__(f"client {client} was left out of round {round}: {reason}")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.client, self.round, self.reason)


Fault = NonFinite | LeftOut
"""Why a client did not count in a round."""


def require(field: str, value: Any, holds: Check, allowed: str) -> None:
    """Raise `InvalidValue` unless `holds(value)`, also for every entry where the value is a tensor.

    A tensor stands for a grid of settings, a callable for a schedule of t, tried here at t = 0.
    """
    probe = value(0) if callable(value) else value
    try:
        entries = probe.tolist() if isinstance(probe, torch.Tensor) else [probe]
        fine = all(holds(entry) for entry in entries)
    except TypeError:
        fine = False
    if not fine:
        raise InvalidValue(field, probe if callable(value) else value, allowed)


def is_number(value: Any) -> bool:
    """A real number that is not a truth value."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def require_positive(field: str, value: Any) -> None:
    """The value, or each value of a grid or schedule, must be a finite number above 0."""
    require(field, value, lambda v: is_number(v) and 0 < v < float("inf"), "a finite number above 0")


def require_fraction(field: str, value: Any) -> None:
    """The value, or each value of a grid, must lie in (0, 1]."""
    require(field, value, lambda v: is_number(v) and 0 < v <= 1, "in (0, 1]")


def require_count(field: str, value: Any, least: int = 1) -> None:
    """The value must be a whole number, at least `least`."""
    require(
        field,
        value,
        lambda v: isinstance(v, int) and not isinstance(v, bool) and v >= least,
        f"a whole number, at least {least}",
    )


def require_choice(field: str, value: Any, choices: Iterable[str]) -> None:
    """The value must be one of a few names."""
    choices = list(choices)
    require(field, value, lambda v: v in choices, "one of " + ", ".join(map(repr, choices)))
