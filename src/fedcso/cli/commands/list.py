"""List problems, algorithms, datasets, experiments, engines, estimators and schedules.

examples:
  fedcso list
  fedcso list algorithms
"""

from collections.abc import Callable

from fedcso.algorithms import ALGORITHMS
from fedcso.core.definition import Imported, Written
from fedcso.core.errors import UnknownName
from fedcso.core.schedules import SCHEDULES
from fedcso.datasets import TABLES as DATASETS
from fedcso.engines import ENGINES
from fedcso.estimators import ESTIMATORS
from fedcso.experiments import EXPERIMENTS
from fedcso.problems import PROBLEMS
from fedcso.runs.parser import simple_parser

FLOWER = {"flower": Written("fedcso.federation", "").module_summary}
"""Listed with the engines, although it has a command instead of a name for --engine."""


def _when_to_use(name: str) -> str:
    defined = ALGORITHMS.definition(name)
    return defined.attribute("use_when") or defined.summary


TABLES: dict[str, Callable[[], dict[str, str]]] = {
    "problems": lambda: {name: PROBLEMS.definition(name).summary for name in PROBLEMS},
    "algorithms": lambda: {name: _when_to_use(name) for name in ALGORITHMS},
    "datasets": lambda: {name: table.definition(name).module_summary for table in DATASETS for name in table},
    "experiments": lambda: {name: EXPERIMENTS.definition(name).summary for name in EXPERIMENTS},
    "engines": lambda: {name: ENGINES.definition(name).module_summary for name in ENGINES} | FLOWER,
    "estimators": lambda: {name: ESTIMATORS.definition(name).summary for name in ESTIMATORS},
    "schedules": lambda: {name: Imported(kind).summary for name, kind in SCHEDULES.items()},
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
