"""Write a ready Flower app for a problem, a method and some sites, with a page for the coordinator and one for a site.

examples:
  fedcso flower init trial --problem auprc --algorithm FCSG-M --sites 3 --rounds 5
  fedcso flower init hospitals --problem auprc --data sites --label y --sites berlin,oslo,rome --min-sites 2
  fedcso flower init own --problem examples/own_problem.py:task --hospitals 3 --sites 3
options are those of `fedcso run` (see fedcso run auprc --help) and:
"""

from dataclasses import replace
from pathlib import Path

from fedcso.cli.options import read_options
from fedcso.cli.parser import Parser, UsageError
from fedcso.core.errors import FedcsoError, InvalidValue
from fedcso.datasets.tables.agree import ELSEWHERE
from fedcso.engines.work import require_compatible
from fedcso.estimators import ESTIMATORS
from fedcso.federation.deploy.app import write_app
from fedcso.federation.options import Federation
from fedcso.runs.config import RunConfig, option_names

USAGE = "fedcso flower init FOLDER --problem PROBLEM"


def main(arguments: list[str]) -> int:
    """Check everything, then write."""
    folder, rest = _folder(arguments)
    settings = read_options("flower", str(__doc__), rest, _add_options, USAGE)
    config, federation = RunConfig.from_flat(settings), Federation.from_flat(settings)
    config.require_available()
    federation.check(config.plan)
    for algorithm, _ in config.built().values():
        require_compatible(algorithm, ESTIMATORS[config.estimator], config.plan)
    if config.problem_options.get("data") != ELSEWHERE:
        config = _dealt(config, len(federation.names))
    write_app(folder, config, federation)
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


def _dealt(config: RunConfig, sites: int) -> RunConfig:
    """For data that every site can make: as many clients as sites, and everything goes together."""
    if "clients" in option_names(config.problem):
        config = replace(config, problem_options={**config.problem_options, "clients": sites})
    task = config.task()
    if len(task.clients) != sites:
        raise InvalidValue("sites", sites, f"as many as the problem has clients, {len(task.clients)}")
    for algorithm, _ in config.built().values():
        if algorithm.stacks is False and not algorithm.durable:
            raise FedcsoError(f"{type(algorithm).__name__} is not carried out over real sites")
    config.units(task)  # refuses what does not go together
    return config
