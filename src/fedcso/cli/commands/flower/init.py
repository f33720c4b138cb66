"""Write a ready Flower app for a problem, a method and some sites, with a page for the coordinator and one for a site.

examples:
  fedcso flower init trial --problem auprc --algorithm FCSG-M --sites 3 --rounds 5
  fedcso flower init hospitals --problem auprc --data sites --label y --sites berlin,oslo,rome --min-sites 2
  fedcso flower init own --problem examples/own_problem.py:task --hospitals 3 --sites 3
options are those of `fedcso run` (see fedcso run auprc --help) and:
"""

from pathlib import Path
from typing import Any

from fedcso.cli.options import read_options
from fedcso.cli.parser import Parser, UsageError
from fedcso.core.errors import FedcsoError, InvalidValue
from fedcso.datasets.tables.agree import ELSEWHERE
from fedcso.engines.job import Job
from fedcso.federation.deploy.app import write_app
from fedcso.federation.options import OPTIONS, Federation
from fedcso.runs.config import methods_of, plan_of, task_of
from fedcso.runs.specs import task_maker

USAGE = "fedcso flower init FOLDER --problem PROBLEM"

NOT_HERE = ("engine", "ranks", "track", "name", "checkpoint_rounds", "checkpoint_seconds")
"""Options of `fedcso run` that mean nothing over real sites."""


def main(arguments: list[str]) -> int:
    """Check everything, then write."""
    folder, rest = _folder(arguments)
    config = read_options("flower", str(__doc__), rest, _add_options, USAGE)
    config = {name: value for name, value in config.items() if name not in NOT_HERE}
    federation = Federation(**{name: config[name] for name in OPTIONS})
    federation.check(plan_of(config))
    if config.get("data") != ELSEWHERE:
        config = _dealt(config, len(federation.names))
    write_app(folder, config, federation.names)
    print(f"written  {folder}: README.md for the coordinator, SITE.md for a site")
    print(f"try it   fedcso flower up {folder} && fedcso flower run {folder}; fedcso flower down {folder}")
    return 0


def _add_options(parser: Parser) -> None:
    parser.add_class_arguments(Federation, as_group=True)
    parser.set_defaults({"seeds": 1, "algorithm": ["FCSG-M"]})


def _folder(arguments: list[str]) -> tuple[Path, list[str]]:
    """The folder, and the arguments with the problem first."""
    if arguments[:1] in (["--help"], ["-h"]):
        return Path(), ["auprc", "--help"]
    if not arguments or arguments[0].startswith("-"):
        raise UsageError("folder: name the folder first, as in: fedcso flower init trial --problem auprc")
    folder, rest = Path(arguments[0]), arguments[1:]
    for place, option in enumerate(rest):
        name, _, value = option.partition("=")
        if name == "--problem" and (value or rest[place + 1 :]):
            used = 1 if value else 2
            return folder, [value or rest[place + 1], *rest[:place], *rest[place + used :]]
    raise UsageError("problem: say which, as in: fedcso flower init trial --problem auprc (fedcso list problems)")


def _dealt(config: dict[str, Any], sites: int) -> dict[str, Any]:
    """For data that every site can make: as many clients as sites, and everything goes together."""
    parser = Parser()
    parser.add_function_arguments(task_maker(config["problem"]))
    if "clients" in parser.known():
        config = config | {"clients": sites}
    task = task_of(config)
    if len(task.clients) != sites:
        raise InvalidValue("sites", sites, f"as many as the problem has clients, {len(task.clients)}")
    for algorithm, codec in methods_of(config).values():
        if algorithm.stacks is False and not algorithm.durable:
            raise FedcsoError(f"{type(algorithm).__name__} is not carried out over real sites")
        Job(algorithm, task, plan_of(config), codec=codec)
    return config
