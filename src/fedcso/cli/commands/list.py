"""What there is: problems, algorithms, datasets, experiments, engines, estimators, schedules.

examples:
  fedcso list
  fedcso list algorithms
"""

import inspect
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from fedcso import federation
from fedcso.algorithms import ALGORITHMS
from fedcso.cli.parser import simple_parser
from fedcso.core.errors import UnknownName
from fedcso.core.schedules import SCHEDULES
from fedcso.datasets import CHARACTERS, DATASETS, IMAGES
from fedcso.engines import ENGINES
from fedcso.estimators import ESTIMATORS
from fedcso.experiments import EXPERIMENTS
from fedcso.problems import PROBLEMS

HELP = "problems, algorithms, datasets, experiments, engines"


def _first_line(thing: Any) -> str:
    return (inspect.getdoc(thing) or "").partition("\n")[0]


def _module_line(thing: Any) -> str:
    return _first_line(sys.modules[thing.__module__])


TABLES: dict[str, tuple[Mapping[str, Any], Callable[[Any], str]]] = {
    "problems": (PROBLEMS, _first_line),
    "algorithms": (ALGORITHMS, _first_line),
    "datasets": (DATASETS | IMAGES | CHARACTERS, _module_line),
    "experiments": (EXPERIMENTS, lambda experiment: experiment.title),
    # Real sites are not an engine that is chosen by its name, but by: fedcso flower
    "engines": (
        {name: import_module(f"fedcso.engines.{name}") for name in ENGINES} | {"flower": federation},
        _first_line,
    ),
    "estimators": (ESTIMATORS, lambda estimator: _first_line(estimator.losses)),
    "schedules": (SCHEDULES, _first_line),
}


def main(arguments: list[str]) -> int:
    """One table, or all."""
    parser = simple_parser("list", str(__doc__))
    parser.add_argument("what", nargs="?", help=f"one of: {', '.join(TABLES)}")
    what = parser.parse_args(arguments).what
    if what and what not in TABLES:
        raise UnknownName("table", what, TABLES)
    for title, (table, describe) in TABLES.items():
        if what in (None, title):
            print(f"{title}:")
            for name, thing in table.items():
                print(f"  {name:20} {describe(thing)}")
            print()
    return 0
