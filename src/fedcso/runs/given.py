"""Objects of a program, a task or methods, that stand for names in a configuration.

A configuration has a name for everything, so that a run can be started again from its file. A method whose class can be
imported is named by its specification, `FCSG-M(momentum=0.5)` or `my_file.py:Mine(friction=0.1)`; what only the program
has is named in angle brackets, `<Mine>(friction=0.1)`, and resuming needs it again.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fedcso.algorithms import ALGORITHMS
from fedcso.core import user_code
from fedcso.core.algorithm import Algorithm
from fedcso.core.errors import InvalidValue
from fedcso.core.task import Task
from fedcso.runs.methods import MethodSpec, parse_methods
from fedcso.runs.specs import TaskMaker, is_object, spell, task_maker


@dataclass(frozen=True)
class Given:
    """The objects of a program that a configuration refers to."""

    task: Task | None = None
    methods: Mapping[str, MethodSpec] = field(default_factory=dict)
    """Methods by their names in the configuration."""

    @classmethod
    def of(cls, task: Task | None, algorithms: Sequence[str | Algorithm]) -> "Given":
        """Return the objects among some arguments."""
        specs = [describe_method(one) for one in algorithms if isinstance(one, Algorithm)]
        return cls(task, {spec.text: spec for spec in specs})

    def maker(self, problem: str, root: Path = user_code.HERE) -> TaskMaker:
        """Return the function that makes the task of a problem; raise if the task is that of another problem."""
        task = self.task
        if task is None:
            return task_maker(problem, root)
        if problem != describe_task(task):
            raise InvalidValue("task", describe_task(task), f"left out, or the task of {problem}")
        return lambda: task

    def parse_methods(self, texts: Sequence[str], root: Path = user_code.HERE) -> tuple[MethodSpec, ...]:
        """Return the methods with these names."""
        return parse_methods(texts, root, self.methods)


NOTHING = Given()
"""No objects: every name in the configuration says where to find what it stands for."""


def describe_task(task: Task) -> str:
    """Return the name of a task in a configuration."""
    return f"<{type(task.problem).__name__}>"


def describe_method(algorithm: Algorithm) -> MethodSpec:
    """Return the specification of a method whose settings are all given."""
    settings = {
        name: describe_method(value) if isinstance(value, Algorithm) else value
        for name, value in vars(algorithm).items()
    }
    options = ", ".join(f"{name}={_spell(value)}" for name, value in settings.items())
    kind = type(algorithm)
    return MethodSpec(f"{_name(kind)}({options})" if options else _name(kind), kind, settings)


def _name(kind: type[Algorithm]) -> str:
    """Return the name under which a class can be found again, or one in angle brackets."""
    for name in ALGORITHMS:
        if ALGORITHMS[name] is kind:
            return name
    module = sys.modules.get(kind.__module__)
    if module is None or kind.__module__ == "__main__" or getattr(module, kind.__name__, None) is not kind:
        return f"<{kind.__name__}>"
    loaded = user_code.file_of(module)
    return f"{loaded or kind.__module__}:{kind.__name__}"


def _spell(value: Any) -> str:
    text = spell(value)
    return f"<{getattr(value, '__name__', type(value).__name__)}>" if is_object(text) else text
