"""Write a Flower app for a problem, a method and some sites, with instructions for the coordinator and for a site.

The options are those of `fedcso run`, and those of a run over real sites at the end.

examples:
  fedcso flower init trial --problem auprc --algorithm FCSG-M --sites 3 --rounds 5
  fedcso flower init hospitals --problem auprc --data sites --label y --sites berlin,oslo,rome --min-sites 2
  fedcso flower init own --problem examples/own_problem.py:task --hospitals 3 --sites 3
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
from fedcso.federation.options import Federation, run_config
from fedcso.runs.config import RunConfig, option_names

USAGE = "fedcso flower init FOLDER --problem {problem}"


def main(arguments: list[str]) -> int:
    """Check all settings, then write the app."""
    folder, rest = _split_folder(arguments)
    settings = read_options("flower", str(__doc__), rest, _add_options, USAGE, methods=["FCSG-M"])
    config, federation = run_config(settings), Federation.from_flat(settings)
    config.require_available()
    federation.check(config.plan)
    for algorithm, _ in config.built().values():
        require_compatible(algorithm, ESTIMATORS[config.estimator], config.plan)
    if config.problem_options.get("data") != ELSEWHERE:
        config = _one_client_per_site(config, len(federation.names))
    write_app(folder, config, federation)
    print(f"written  {folder}, with README.md for the coordinator and SITE.md for a site")
    print(f"to try   fedcso flower up {folder} && fedcso flower run {folder}; fedcso flower down {folder}")
    return 0


def _add_options(parser: Parser) -> None:
    parser.add_class_arguments(Federation, as_group=True)
    parser.set_defaults({"seeds": 1})


def _split_folder(arguments: list[str]) -> tuple[Path, list[str]]:
    """Return the folder, and the other arguments with the problem first."""
    if arguments[:1] in (["--help"], ["-h"]):
        return Path(), ["auprc", "--help"]
    if not arguments or arguments[0].startswith("-"):
        raise UsageError("the folder is missing: name it first, as in `fedcso flower init trial --problem auprc`")
    folder, rest = Path(arguments[0]), arguments[1:]
    for place, option in enumerate(rest):
        name, _, value = option.partition("=")
        if name == "--problem" and (value or rest[place + 1 :]):
            used = 1 if value else 2
            return folder, [value or rest[place + 1], *rest[:place], *rest[place + used :]]
    raise UsageError(
        "--problem is missing: name one, as in `fedcso flower init trial --problem auprc` (see: fedcso list problems)"
    )


def _one_client_per_site(config: RunConfig, sites: int) -> RunConfig:
    """Return the configuration with one client per site, for data that every site can generate or load.

    Raise `FedcsoError` if problem, methods and sites do not fit together.
    """
    if "clients" in option_names(config.problem):
        config = replace(config, problem_options={**config.problem_options, "clients": sites})
    task = config.task()
    if len(task.clients) != sites:
        raise InvalidValue("sites", sites, f"{len(task.clients)}, the number of clients of the problem")
    for algorithm, _ in config.built().values():
        if algorithm.stacks is False and not algorithm.durable:
            raise FedcsoError(f"{type(algorithm).__name__} can't run over real sites; choose another method")
    config.units(task)  # raises if something does not fit together
    return config
