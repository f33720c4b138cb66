"""List problems, algorithms, datasets, experiments, engines, estimators and schedules.

examples:
  fedcso list
  fedcso list algorithms
"""

import inspect
from collections.abc import Callable
from typing import Any

from fedcso import federation
from fedcso.algorithms import ALGORITHMS
from fedcso.cli.parser import simple_parser
from fedcso.core.algorithm import Algorithm
from fedcso.core.errors import UnknownName
from fedcso.core.schedules import SCHEDULES
from fedcso.datasets import TABLES as DATASETS
from fedcso.engines import ENGINES
from fedcso.estimators import ESTIMATORS
from fedcso.experiments import EXPERIMENTS
from fedcso.problems import PROBLEMS


def _first_line(thing: Any) -> str:
    return (inspect.getdoc(thing) or "").partition("\n")[0]


FLOWER = {"flower": _first_line(federation)}
"""Listed with the engines, although it has a command instead of a name for --engine."""


def _when_to_use(kind: type[Algorithm]) -> str:
    return kind.use_when or _first_line(kind)


TABLES: dict[str, Callable[[], dict[str, str]]] = {
    "problems": lambda: {name: _first_line(maker) for name, maker in PROBLEMS.items()},
    "algorithms": lambda: {name: _when_to_use(kind) for name, kind in ALGORITHMS.items()},
    "datasets": lambda: {name: _first_line(table.module(name)) for table in DATASETS for name in table},
    "experiments": lambda: {name: experiment.title for name, experiment in EXPERIMENTS.items()},
    "engines": lambda: {name: _first_line(ENGINES.module(name)) for name in ENGINES} | FLOWER,
    "estimators": lambda: {name: _first_line(estimator.losses) for name, estimator in ESTIMATORS.items()},
    "schedules": lambda: {name: _first_line(kind) for name, kind in SCHEDULES.items()},
}
"""By kind, the names and their descriptions: when to use a method, else the first line of a docstring."""

GROUPS: dict[str, Callable[[], dict[str, list[str]]]] = {"algorithms": ALGORITHMS.groups}
"""By kind, the names in groups, for kinds that have many."""


def main(arguments: list[str]) -> int:
    """Print one list, or all of them."""
    parser = simple_parser("list", str(__doc__))
    parser.add_argument("what", nargs="?", help=f"{', '.join(TABLES)}; by default all")
    what = parser.parse_args(arguments).what
    if what and what not in TABLES:
        raise UnknownName("list", what, TABLES)
    for title, table in TABLES.items():
        if what in (None, title):
            _print_table(title, table(), GROUPS[title]() if title in GROUPS else {})
    return 0


def _print_table(title: str, described: dict[str, str], groups: dict[str, list[str]]) -> None:
    print(f"{title}:")
    for group, names in (groups or {"": list(described)}).items():
        if group:
            print(f"\n {group}")
        for name in names:
            print(f"  {name:20} {described[name]}")
    print()
