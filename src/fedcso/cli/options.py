"""The options of commands that work on a problem: command line and YAML become one flat configuration."""

import json
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

from jsonargparse import SUPPRESS, ActionConfigFile  # type: ignore[attr-defined]

from fedcso.cli.parser import Parser, joined, normalised
from fedcso.core.errors import FedcsoError, InvalidValue
from fedcso.core.plan import Plan
from fedcso.core.task import plan_defaults
from fedcso.engines import ENGINES
from fedcso.estimators import ESTIMATORS
from fedcso.runs.config import MAIN, Flat
from fedcso.runs.folder import read_yaml
from fedcso.runs.methods import SEND_U, MethodSpec, owners, parse_methods
from fedcso.runs.specs import CODEC_NAMES, task_maker
from fedcso.runs.tracking import TRACKERS


def read_options(
    command: str,
    description: str,
    arguments: list[str],
    extend: Callable[[Parser], None] = lambda parser: None,
    usage: str = "",
) -> Flat:
    """Return a command line as a complete flat configuration; `--help` and mistakes end here.

    `usage` is how the command is called, if not by its name and the problem's.
    """
    if arguments[:1] in (["--help"], ["-h"]):
        arguments = ["invariant_logistic", "--help"]  # the options of a problem, to show some
    problem, methods = _named(arguments)
    summary, _, examples = description.partition("\n")
    parser = Parser(
        prog=f"fedcso {command} {problem}",
        usage=f"{usage or f'fedcso {command} PROBLEM'} [options]   (here with the options of {problem})",
        description=summary,
        epilog=examples.strip(),
    )
    _add_options(parser, command, problem, methods, extend)
    if not arguments[0].startswith("-"):
        arguments = arguments[1:]
    defaults = parser.get_defaults().as_dict()
    given = parser.parse_args(arguments).as_dict()
    # Nothing behind a name in a file (null) leaves that setting at its default.
    values: Flat = {name: defaults.get(name) if value is None else value for name, value in given.items()}
    values.pop("config", None)
    if values["problem"] != problem:
        raise InvalidValue("problem", values["problem"], f"{problem!r}, as named first, or left out")
    return values | {"command": command}


def _named(arguments: list[str]) -> tuple[str, tuple[MethodSpec, ...]]:
    """Return the problem and the methods that a command line or its file names: they decide which options there are."""
    options = joined(normalised(arguments))
    file, content = _config_file(options)
    texts = next((json.loads(value) for option, value in pairwise(options) if option == "--algorithm"), None)
    methods = parse_methods(texts or _methods_in(content))
    if arguments and not arguments[0].startswith("-"):
        return arguments[0], methods
    if file is None:
        raise FedcsoError("which problem? Name it first, as in: fedcso run invariant_logistic (fedcso list shows all)")
    if not isinstance(content.get("problem"), str):
        raise FedcsoError(f"config: {file} does not say which problem it is for; add a line `problem: NAME`")
    return content["problem"], methods


def _methods_in(content: Flat) -> Sequence[str]:
    """Return the methods that a file names; what is wrong with them is told by whoever reads all of it."""
    texts = content.get("algorithm")
    texts = [texts] if isinstance(texts, str) else texts
    return texts if texts and isinstance(texts, list) and all(isinstance(text, str) for text in texts) else MAIN


def _config_file(options: list[str]) -> tuple[Path | None, Flat]:
    """Return the first configuration file that is named, and what is in it."""
    for place, option in enumerate(options):
        name, _, value = option.partition("=")
        if name == "--config":
            value = value or "".join(options[place + 1 : place + 2])
            if not value:
                raise FedcsoError("config: expected one argument, a YAML file")
            return Path(value), read_yaml(Path(value), "config")
    return None, {}


def _add_options(
    parser: Parser, command: str, problem: str, methods: Sequence[MethodSpec], extend: Callable[[Parser], None]
) -> None:
    maker = task_maker(problem)
    parser.add_argument("--config", action=ActionConfigFile, help="take settings from a YAML file")
    parser.add_argument("--command", default=command, help=SUPPRESS)
    parser.add_argument("--problem", default=problem, help="the problem, where it is not named first")
    group = parser.add_argument_group("methods")
    group.add_argument(
        "--algorithm",
        type=list[str] | str,
        default=list(MAIN),
        metavar="NAME",
        help="methods: NAME or 'NAME(option=value, …)'",
    )
    group.add_argument("--seeds", type=list[int] | int | str, default=3, help="how many seeds, or which ones: 5,6,7")
    hyper_parameters = parser.add_argument_group("hyper-parameters, for every chosen method that has them")
    hyper_parameters.add_argument(
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
    extend(parser)
    taken = parser.known()
    for name, having in owners(methods).items():
        if name not in taken:  # another option has the name: this one can be set in brackets behind its method's
            hyper_parameters.add_argument(
                f"--{name}", type=int | float | str, metavar="VALUE", help=f"of {', '.join(having)}"
            )
