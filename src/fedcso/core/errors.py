"""Errors that a user can cause and put right, and checks that raise them.

A message starts in lower case, has no full stop at the end, and says first what is wrong and then what to do.
"""

import sys
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from typing import Any

Check = Callable[[Any], Any]

LONGEST = 1000
"""More characters of a value are not shown."""
LONGEST_NAME, LONGEST_LIST = 100, 5000
"""More characters of one of several names, and of all of them, are not shown: a table's columns may have any names."""


class FedcsoError(Exception):
    """An error that the user can put right; the message says what is wrong and what to do."""

    exit_code: int = 2
    """The exit code of a command that ends with this error: 2 for bad input, 1 for failure, 130 if interrupted."""


class InvalidValue(FedcsoError, ValueError):
    """A setting has a value that is not allowed: "learning_rate = -1 must be a finite number above 0".

    `allowed` completes the sentence "it must be …"; a value that has no place here must be "left out: …".
    """

    def __init__(self, field: str, value: object, allowed: str):
        self.field, self.value, self.allowed = field, value, allowed
        super().__init__(f"{field} = {shown(value)} must be {allowed}")


class UnknownName(FedcsoError, KeyError):
    """A name that is not known; the message lists the known names and suggests the nearest ones."""

    def __init__(self, kind: str, name: object, known: Iterable[str]):
        known = sorted(known)
        close = get_close_matches(str(name)[:LONGEST], known, n=3)
        hint = f"; did you mean {' or '.join(close)}?" if close else ""
        super().__init__(f"unknown {kind} {shown(name)}{hint} (known: {list_names(known)})")

    def __str__(self) -> str:  # KeyError would put the message into quotes
        return str(self.args[0])


def shown(value: object) -> str:
    """Return a value as in Python, without its end if it is very long."""
    return shorten(repr(value), LONGEST)


def list_names(names: Iterable[str]) -> str:
    """Return names separated by commas, without the ends of very long ones and without the end of a very long list."""
    return shorten(", ".join(shorten(name, LONGEST_NAME) for name in names), LONGEST_LIST)


def shorten(text: str, longest: int) -> str:
    """Return a text, without its end if it is longer than that."""
    return text if len(text) <= longest else f"{text[:longest]}…"


class NonFinite(FedcsoError, FloatingPointError):
    """A loss, gradient or update is not finite; the message says at which client, round and step."""

    def __init__(self, quantity: str, client: int, round: int, step: int, seed: int):
        self.quantity, self.client, self.round, self.step, self.seed = quantity, client, round, step, seed
        super().__init__(
            f"non-finite {quantity} at client {client}, round {round}, step {step} (seed {seed}); "
            "try a smaller learning rate, or set on_nonfinite = 'drop' to leave such clients out of the round"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.quantity, self.client, self.round, self.step, self.seed)


class LeftOut(FedcsoError):
    """A client's update was left out of a round; the message says why."""

    def __init__(self, client: int, round: int, reason: str):
        self.client, self.round, self.reason = client, round, reason
        super().__init__(f"client {client} was left out of round {round}: {reason}")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.client, self.round, self.reason)


Fault = NonFinite | LeftOut
"""Why a client was left out of a round."""


def require(field: str, value: Any, holds: Check, allowed: str) -> None:
    """Raise `InvalidValue` unless `holds(value)`; `allowed` completes the sentence "it must be …".

    Of a tensor, which stands for a grid of settings, every entry is checked; of a callable, which stands for a
    schedule, the value at t = 0.
    """
    probe = value(0) if callable(value) else value
    try:
        entries = probe.reshape(-1).tolist() if hasattr(probe, "reshape") else [probe]
        fine = all(holds(entry) for entry in entries)
    except TypeError:
        fine = False
    if not fine:
        raise InvalidValue(field, probe if callable(value) else value, allowed)


def is_number(value: Any) -> bool:
    """Return whether a value is a float, or an int that a float can hold; a bool is neither."""
    whole = isinstance(value, int) and not isinstance(value, bool) and abs(value) <= sys.float_info.max
    return whole or isinstance(value, float)


def require_positive(field: str, value: Any) -> None:
    """Raise `InvalidValue` unless a value (or grid, or schedule) is a finite number above 0."""
    require(field, value, lambda v: is_number(v) and 0 < v < float("inf"), "a finite number above 0")


def require_nonnegative(field: str, value: Any) -> None:
    """Raise `InvalidValue` unless a value (or grid, or schedule) is a finite number, at least 0."""
    require(field, value, lambda v: is_number(v) and 0 <= v < float("inf"), "a finite number, at least 0")


def require_fraction(field: str, value: Any) -> None:
    """Raise `InvalidValue` unless a value (or grid, or schedule) is a number in (0, 1]."""
    require(field, value, lambda v: is_number(v) and 0 < v <= 1, "a number in (0, 1]")


def require_count(field: str, value: Any, least: int = 1) -> None:
    """Raise `InvalidValue` unless a value is a whole number and at least `least`."""
    require(
        field,
        value,
        lambda v: isinstance(v, int) and not isinstance(v, bool) and v >= least,
        f"a whole number, at least {least}",
    )


def require_choice(field: str, value: Any, choices: Iterable[str]) -> None:
    """Raise `InvalidValue` unless a value is one of the choices."""
    choices = list(choices)
    require(field, value, lambda v: v in choices, "one of " + ", ".join(map(repr, choices)))
