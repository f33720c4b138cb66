"""The options of commands that work on a problem: command line and YAML become one flat configuration."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

from jsonargparse import SUPPRESS, ActionConfigFile  # type: ignore[attr-defined]

from fedcso.algorithms import ALGORITHMS
from fedcso.cli.parser import Parser
from fedcso.core.errors import FedcsoError, InvalidValue
from fedcso.core.plan import Plan
from fedcso.core.task import plan_defaults
from fedcso.engines import ENGINES
from fedcso.estimators import ESTIMATORS
from fedcso.runs.config import HYPER, MAIN, Config, as_list, check, seeds
from fedcso.runs.folder import read_yaml
from fedcso.runs.specs import CODEC_NAMES, SEND_U, TaskMaker, hyper_parameters, task_maker
from fedcso.runs.tracking import TRACKERS


def read_options(
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
    check(config)
    return config


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
    group.add_argument(
        f"--{SEND_U}", type=str, metavar="HOW", help=f"how u travels, of methods that share it: {CODEC_NAMES}"
    )
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
