"""Write a Flower app for a problem, a method and some sites, with instructions for the coordinator and for a site.

The options are those of `fedcso run`, and those of a run over real sites at the end. With --from, the objective, the
method and all settings are those that a fit has chosen; options that are given here take precedence.

examples:
  fedcso flower init trial --problem auprc --algorithm FCSG-M --sites 3 --rounds 5
  fedcso flower init hospitals --problem auprc --data sites --label y --sites berlin,oslo,rome --min-sites 2
  fedcso flower init hospitals --from runs/2026-01-31_120000_fit_1a2b3c --sites berlin,oslo,rome
  fedcso flower init own --problem examples/own_problem.py:task --hospitals 3 --sites 3
"""

from dataclasses import replace
from pathlib import Path
from tempfile import NamedTemporaryFile

import yaml

from fedcso.core.errors import FedcsoError, InvalidValue, require
from fedcso.datasets.tables.agree import ELSEWHERE
from fedcso.engines.work import require_compatible
from fedcso.estimators import AUTO
from fedcso.federation.deploy.app import write_app
from fedcso.federation.deploy.deployment import Deployment
from fedcso.federation.options import Federation, run_config
from fedcso.fitting.chosen import Chosen, read_chosen
from fedcso.reports.wishes import Wishes
from fedcso.runs.auto_estimator import settle_estimator
from fedcso.runs.config import Flat, RunConfig, option_names
from fedcso.runs.options import read_options
from fedcso.runs.parser import Parser, UsageError

USAGE = "fedcso flower init FOLDER --problem {problem}"


def main(arguments: list[str]) -> int:
    """Check all settings, then write the app."""
    folder, rest = _split_folder(arguments)
    fit, rest = _take("--from", rest)
    chosen = None if fit is None else read_chosen(Path(fit))
    settings = _read(rest) if chosen is None else _read_after(chosen, rest)
    config, federation = run_config(settings), Federation.from_flat(settings)
    config.require_available()
    federation.check(config.plan)
    for algorithm, codec in config.built().values():
        federation.check_method(algorithm, config.plan, codec)
    if config.problem_options.get("data") != ELSEWHERE:
        config = _one_client_per_site(config, len(federation.names))
    elif config.estimator == AUTO:
        raise InvalidValue("estimator", AUTO, "the name of one: the coordinator has no data to choose it by")
    for algorithm, _ in config.built().values():
        require_compatible(algorithm, config.find_estimator(), config.plan)
    write_app(folder, config, federation, Wishes() if chosen is None else chosen.wishes)
    if config.problem_options.get("data") != ELSEWHERE:
        for name in federation.names:
            Deployment.open(folder).allow(name)
    if federation.secure_aggregation and not federation.clip_update:
        print("note     nobody tests single updates in secure sums; --clip-update C bounds them at the sites")
    print(f"written  {folder}, with README.md for the coordinator and SITE.md for a site")
    if config.problem_options.get("data") == ELSEWHERE:
        print(f"next     fedcso flower up {folder} --sites 0, and let the sites join with their tables (see SITE.md)")
    else:
        print(f"to try   fedcso flower up {folder} && fedcso flower run {folder}; fedcso flower down {folder}")
    return 0


def _add_options(parser: Parser) -> None:
    parser.add_argument("--from", metavar="RUN", help="the folder of a fit, whose chosen settings are used")
    parser.add_class_arguments(Federation, as_group=True)
    parser.set_defaults({"seeds": 1})


def _split_folder(arguments: list[str]) -> tuple[Path, list[str]]:
    """Return the folder and the other arguments."""
    if arguments[:1] in (["--help"], ["-h"]):
        return Path(), ["--problem", "auprc", "--help"]
    if not arguments or arguments[0].startswith("-"):
        raise UsageError("the folder is missing: name it first, as in `fedcso flower init trial --problem auprc`")
    return Path(arguments[0]), arguments[1:]


def _read(arguments: list[str]) -> Flat:
    """Return the settings of a federation for the problem that --problem names."""
    problem, rest = _take("--problem", arguments)
    if problem is None:
        raise UsageError(
            "--problem is missing: name one, as in `fedcso flower init trial --problem auprc` "
            "(see: fedcso list problems), or take a fit's choice with --from"
        )
    return read_options("flower", str(__doc__), [problem, *rest], _add_options, USAGE, methods=["FCSG-M"])


def _read_after(chosen: Chosen, arguments: list[str]) -> Flat:
    """Return the settings that a fit has chosen, after which come the options that are given."""
    problem, rest = _take("--problem", arguments)
    require("problem", problem, lambda name: name in (None, chosen.problem), f"{chosen.problem}, as the fit has chosen")
    other_method = any(option.partition("=")[0] == "--algorithm" for option in rest)
    settings = {"data": ELSEWHERE} | chosen.settings | ({} if other_method else chosen.method)
    if chosen.note:
        print(f"note     {chosen.note}")
    with NamedTemporaryFile("w", suffix=".yaml") as file:
        yaml.safe_dump(settings, file)
        file.flush()
        return _read(["--problem", chosen.problem, "--config", file.name, *rest])


def _take(option: str, arguments: list[str]) -> tuple[str | None, list[str]]:
    """Return the value of an option, or None, and the arguments without it."""
    for place, argument in enumerate(arguments):
        name, equals, value = argument.partition("=")
        if name == option:
            used = 1 if equals else 2
            if not equals and not arguments[place + 1 :]:
                raise UsageError(f"{option} is given without a value")
            return value if equals else arguments[place + 1], [*arguments[:place], *arguments[place + used :]]
    return None, arguments


def _one_client_per_site(config: RunConfig, sites: int) -> RunConfig:
    """Return the configuration with one client per site, for data that every site can generate or load.

    Raise `FedcsoError` if problem, methods and sites do not fit together.
    """
    if "clients" in option_names(config.problem):
        config = replace(config, problem_options={**config.problem_options, "clients": sites})
    task = config.task()
    if len(task.clients) != sites:
        raise InvalidValue("sites", sites, f"{len(task.clients)}, the number of clients of the problem")
    settled = settle_estimator(config, task)
    config = settled.config
    for note in settled.notes():
        print(f"note    {note}")
    for algorithm, _ in config.built().values():
        if algorithm.stacks is False and not algorithm.durable:
            raise FedcsoError(f"{type(algorithm).__name__} can't run over real sites; choose another method")
    config.units(task)  # raises if something does not fit together
    return config
