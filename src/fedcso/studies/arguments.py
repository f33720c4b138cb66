"""The arguments of `fedcso.run` and `fedcso.tune`, as a configuration: names, numbers, or objects of the program."""

from collections.abc import Callable, Mapping, Sequence
from os import PathLike, fspath
from typing import Any

from fedcso.core.algorithm import Algorithm
from fedcso.core.task import Task
from fedcso.runs.config import Flat
from fedcso.runs.given import Given, describe_method, describe_task
from fedcso.runs.options import read_keywords
from fedcso.runs.parser import Parser
from fedcso.runs.specs import is_object, spell

Algorithms = str | Algorithm | Sequence[str | Algorithm]
"""One method or several: `FCSG-M`, `FCSG-M(momentum=0.5)`, `my_file.py:Mine`, or `fedcso.Algorithm` objects."""


def read_arguments(
    command: str,
    task: str | PathLike[str] | Task,
    algorithms: Algorithms | None,
    options: Mapping[str, Any],
    extend: Callable[[Parser], None] = lambda parser: None,
) -> tuple[Flat, Given]:
    """Return the complete configuration of a command, with the objects that it refers to."""
    methods = as_sequence(algorithms)
    objects = Given.of(task if isinstance(task, Task) else None, methods)
    values = {name: as_option(value) for name, value in options.items() if value is not None}
    values["problem"] = describe_task(task) if isinstance(task, Task) else fspath(task)
    if methods:
        values["algorithm"] = [describe_method(one).text if isinstance(one, Algorithm) else one for one in methods]
    return read_keywords(command, values, objects, extend), objects


def as_sequence(algorithms: Algorithms | None) -> Sequence[str | Algorithm]:
    """Return methods as a sequence; one becomes a sequence of one."""
    if algorithms is None:
        return []
    return [algorithms] if isinstance(algorithms, str | Algorithm) else list(algorithms)


def as_option(value: Any) -> Any:
    """Return a value as options have it: a number, text or a list of them."""
    if isinstance(value, PathLike):
        return fspath(value)
    if hasattr(value, "item") and callable(value.item):  # a number of NumPy or torch
        return value.item()
    if isinstance(value, range | list | tuple):
        return [as_option(one) for one in value]
    text = value if isinstance(value, str | int | float) else spell(value)
    return value if isinstance(text, str) and is_object(text) else text
