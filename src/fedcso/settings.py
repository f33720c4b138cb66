"""What a run is told: options and YAML files become one flat configuration, and that becomes objects."""

import re
from collections.abc import Callable
from dataclasses import fields
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from jsonargparse import SUPPRESS, ActionConfigFile  # type: ignore[attr-defined]

from fedcso import launch
from fedcso.algorithm import Algorithm
from fedcso.algorithms import ALGORITHMS
from fedcso.engines import ENGINES
from fedcso.errors import FedcsoError, InvalidValue, require, require_count
from fedcso.estimators import ESTIMATORS
from fedcso.folder import read_yaml
from fedcso.parser import Parser, seeds
from fedcso.plan import Plan
from fedcso.specs import (
    TaskMaker,
    algorithms,
    build,
    hyper_parameters,
    make_task,
    parse_algorithm,
    parse_value,
    settings_of,
    spell,
    task_maker,
)
from fedcso.study import Study, Unit
from fedcso.task import Task, plan_defaults
from fedcso.tracking import TRACKERS, require_tracker

Config = dict[str, Any]

PLAN = [field.name for field in fields(Plan)]
HYPER = sorted({name for kind in ALGORITHMS.values() for name in hyper_parameters(kind)})
MAIN = ["FCSG", "FCSG-M", "Acc-FCSG-M"]


def read(
    command: str,
    description: str,
    arguments: list[str],
    extend: Callable[[Parser], None] = lambda parser: None,
    usage: str = "",
) -> Config:
    """A command line as a complete configuration; `--help` and mistakes end here.

    `usage` is how the command is called, if not by its name and the problem's.
    """
    if arguments[:1] in (["--help"], ["-h"]):
        arguments = ["invariant_logistic", "--help"]  # the options of a problem, to show some
    problem = _problem_of(arguments)
    maker = task_maker(problem)
    summary, _, examples = description.partition("\n")
    parser = Parser(
        prog=f"fedcso {command} {problem}",
        usage=f"{usage or f'fedcso {command} PROBLEM'} [options]   (here with the options of {problem})",
        description=summary,
        epilog=examples.strip(),
    )
    _add_options(parser, command, problem, maker)
    extend(parser)
    if not arguments[0].startswith("-"):
        arguments = arguments[1:]
    defaults = parser.get_defaults().as_dict()
    given = parser.parse_args(arguments).as_dict()
    # Nothing behind a name in a file (null) leaves that setting at its default.
    values: Config = {name: defaults.get(name) if value is None else value for name, value in given.items()}
    values.pop("config", None)
    if values["problem"] != problem:
        raise InvalidValue("problem", values["problem"], f"{problem!r}, as named first, or left out")
    values |= {"command": command, "algorithm": as_list(values["algorithm"]), "seeds": seeds(values["seeds"])}
    config = {key: value for key, value in values.items() if value is not None}
    _check(config)
    return config


def as_list(value: list[str] | str) -> list[str]:
    """A single name in a file counts as a list of one."""
    return [value] if isinstance(value, str) else value


def _check(config: Config) -> None:
    """Mistakes that would show later show now, before anything is made."""
    algorithms_of(config)
    plan_of(config)
    require_count("checkpoint_rounds", config["checkpoint_rounds"], least=0)
    require("checkpoint_seconds", config["checkpoint_seconds"], lambda s: s >= 0, "at least 0")
    name = config.get("name", "run")
    require("name", name, lambda n: re.fullmatch(r"[\w.=-]+", n), "made of letters, digits and - _ . =")
    try:
        torch.empty(0, device=config["device"])
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise InvalidValue("device", config["device"], f"a torch device that is here ({reason})") from None
    require_tracker(config["track"])
    if "ranks" in config:
        launch.require_over_ranks(config["engine"], config["ranks"])
    if config["command"] != "run" and launch.over_ranks(config["engine"]):
        raise InvalidValue("engine", config["engine"], "another for a sweep, whose runs are many and short")


def _problem_of(arguments: list[str]) -> str:
    """The problem that a command line or its configuration file names."""
    if arguments and not arguments[0].startswith("-"):
        for option, following in pairwise(arguments):
            if option == "--config":
                read_yaml(Path(following), "config")
        return arguments[0]
    for place, option in enumerate(arguments):
        name, _, value = option.partition("=")
        following = arguments[place + 1] if place + 1 < len(arguments) else ""
        if name != "--config":
            continue
        if not (value or following):
            raise FedcsoError("config: expected one argument, a YAML file")
        path = Path(value or following)
        content = read_yaml(path, "config")
        if isinstance(content.get("problem"), str):
            return str(content["problem"])
        raise FedcsoError(f"config: {path} does not say which problem it is for; add a line `problem: NAME`")
    raise FedcsoError("which problem? Name it first, as in: fedcso run invariant_logistic (fedcso list shows all)")


def _add_options(parser: Parser, command: str, problem: str, maker: TaskMaker) -> None:
    parser.add_argument("--config", action=ActionConfigFile, help="take settings from a YAML file")
    parser.add_argument("--command", default=command, help=SUPPRESS)
    parser.add_argument("--problem", default=problem, help="the problem, where it is not named first")
    group = parser.add_argument_group("methods")
    group.add_argument(
        "--algorithm",
        type=list[str] | str,
        default=MAIN,
        metavar="NAME",
        help="methods: NAME or 'NAME(option=value, …)'",
    )
    group.add_argument("--seeds", type=list[int] | int | str, default=3, help="how many seeds, or which ones: 5,6,7")
    group = parser.add_argument_group("hyper-parameters, for every chosen method that has them")
    for name in HYPER:
        owners = [known for known, kind in ALGORITHMS.items() if name in hyper_parameters(kind)]
        group.add_argument(f"--{name}", type=float | int | str, metavar="VALUE", help=f"of {', '.join(owners)}")
    parser.add_class_arguments(Plan, as_group=True)
    parser.set_defaults(plan_defaults(maker))
    try:
        parser.add_function_arguments(maker, as_group=True)
    except ValueError as error:  # an argument without a type, or named like an option of fedcso's own
        raise FedcsoError(f"problem: the arguments of {problem} can't be options: {error}") from error
    group = parser.add_argument_group("how it is carried out")
    group.add_argument("--engine", choices=list(ENGINES), default="simulation", help="where clients live")
    group.add_argument("--ranks", type=int, help="processes of the engine distributed; as many as cores by default")
    group.add_argument("--estimator", choices=list(ESTIMATORS), default="plain", help="of the gradient")
    group.add_argument("--device", type=str, default="cpu", help="torch device")
    group.add_argument("--checkpoint_rounds", type=int, default=0, help="rounds between checkpoints; 0: by time")
    group.add_argument("--checkpoint_seconds", type=float, default=30.0, help="seconds between checkpoints")
    group.add_argument("--track", choices=list(TRACKERS), default="none", help="log to a tracker as well")
    group.add_argument("--out", type=str, default="runs", help="where run folders go")
    group.add_argument("--name", type=str, help="what the folder is called after; the problem by default")


def plan_of(config: Config) -> Plan:
    """The plan in a configuration."""
    return Plan(**{name: config[name] for name in PLAN if name in config})


def task_of(config: Config) -> Task:
    """The problem and its data."""
    maker = task_maker(config["problem"])
    parser = Parser()
    parser.add_function_arguments(maker)  # knows also the options that a function hands on as **keywords
    return make_task(maker, {name: config[name] for name in parser.known() if name in config}, config["problem"])


def algorithms_of(config: Config) -> dict[str, Algorithm]:
    """The methods, by the names they were asked for."""
    common = {name: parse_value(name, config[name]) for name in HYPER if name in config}
    return algorithms(config["algorithm"], common)


def algorithm_of(config: Config, spec: str, values: dict[str, Any]) -> Algorithm:
    """One of the methods, with some of its settings replaced."""
    kind, own = parse_algorithm(spec)
    known = hyper_parameters(kind)
    common = {name: parse_value(name, config[name]) for name in known if name in config}
    return build(kind, common | own | values)


def hyper_of(spec: str) -> list[str]:
    """The names of a method's hyper-parameters."""
    return hyper_parameters(parse_algorithm(spec)[0])


def spec_of(spec: str, algorithm: Algorithm) -> str:
    """A method with all its settings, as it can be asked for."""
    name = spec.partition("(")[0].strip()
    options = ", ".join(f"{key}={spell(value)}" for key, value in settings_of(algorithm).items())
    return f"{name}({options})"


def study_of(config: Config, units: list[Unit], folder: Path) -> Study:
    """Units of work with the configuration's checkpoint rhythm."""
    return Study(units, folder / "checkpoints", config["checkpoint_rounds"], config["checkpoint_seconds"])
