"""The options of what works on a problem, read into one flat configuration: from the command line, YAML or keywords."""

import inspect
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import yaml
from jsonargparse import SUPPRESS, ActionConfigFile  # type: ignore[attr-defined]

from fedcso.algorithms import MAIN
from fedcso.codecs import SEND_U, spellings
from fedcso.core.errors import FedcsoError, InvalidValue
from fedcso.core.plan import Plan
from fedcso.engines import ENGINES
from fedcso.estimators import AUTO, ESTIMATORS
from fedcso.problems import PROBLEMS
from fedcso.runs.parser import DRY_RUN, Parser, split_description, use_underscores
from fedcso.runs.subject import Subject, describe_subject, find_subject, subject_without_problem
from fedcso.runs.tracking import TRACKERS

if TYPE_CHECKING:  # importing these imports torch, which help without a problem does not need
    from fedcso.runs.config import Flat
    from fedcso.runs.given import Given
    from fedcso.runs.specs import TaskMaker


COMMON = frozenset(
    {
        *("algorithm", "seeds", "rounds", "local_steps", "outer_batch", "inner_batch", "participation"),
        *("estimator", "engine", "out", "name", "config", "grid", "search", "trials", "metric", "dry_run", "sites"),
    }
)
"""The options that --help shows, besides those of the problem and the hyper-parameters of the methods to run."""


PRINT_CONFIG = "--print_config"


def read_options(
    command: str,
    docstring: str,
    arguments: list[str],
    extend: Callable[[Parser], None] = lambda parser: None,
    usage: str = "fedcso {command} {problem}",
    methods: Sequence[str] = MAIN,
) -> "Flat":
    """Return a command line as a complete flat configuration.

    `extend` adds the command's own options; `usage` is how the command is called; `methods` are those that it uses if
    none are named and the problem recommends none.
    `--help` prints the help and exits; raise `UsageError` or `FedcsoError` if an argument is wrong.
    """
    general = arguments[:1] in (["--help"], ["-h"], ["--help-all"])
    subject = subject_without_problem(methods) if general else find_subject(command, arguments, methods)
    parser = _parser(command, docstring, subject, extend, usage)
    if not arguments[0].startswith("-"):
        arguments = arguments[1:]
    asked = [one for one in arguments if use_underscores([one]) != [PRINT_CONFIG]]
    values = _with_defaults(parser, parser.parse_args(asked).as_dict())
    if values["problem"] != subject.problem:
        raise InvalidValue("problem", values["problem"], f"{subject.problem!r}, the problem named first, or left out")
    if asked != arguments:
        print(yaml.safe_dump(_complete(values, subject), sort_keys=False, allow_unicode=True), end="")
        raise SystemExit(0)
    return values | {"command": command}


def read_keywords(
    command: str, values: "Flat", objects: "Given", extend: Callable[[Parser], None] = lambda parser: None
) -> "Flat":
    """Return the keywords of a Python function as a complete flat configuration, as `read_options` does for arguments.

    `objects` are those of the program that names among the values stand for.
    """
    texts = values.get("algorithm")
    subject = describe_subject(
        str(values["problem"]), [texts] if isinstance(texts, str) else texts or (), MAIN, objects
    )
    usage = "fedcso {command} {problem}" if objects.task is None else "fedcso {command} PROBLEM"
    parser = _parser(command, "", subject, extend, usage)
    return _with_defaults(parser, parser.parse_object(values).as_dict()) | {"command": command}


def _parser(
    command: str,
    docstring: str,
    subject: Subject,
    extend: Callable[[Parser], None],
    usage: str,
) -> Parser:
    """Return a parser of all options."""
    shown = (
        f"here with the options of {subject.problem}"
        if subject.problem
        else "problems have options of their own, see below"
    )
    description, examples = split_description(docstring)
    parser = Parser(
        prog=usage.format(command=command, problem=subject.problem or "PROBLEM"),
        usage=f"{usage.format(command=command, problem='PROBLEM')} [options]   ({shown})",
        description=description,
        epilog=examples,
    )
    _add_options(parser, command, subject, extend)
    return parser


def _with_defaults(parser: Parser, given: "Flat") -> "Flat":
    """Return complete values: a name without a value (null in a file) leaves the setting at its default."""
    defaults = parser.get_defaults().as_dict()
    values = {name: defaults.get(name) if value is None else value for name, value in given.items()}
    values.pop("config", None)
    return values


def _complete(values: "Flat", subject: Subject) -> "Flat":
    """Return the settings that have a value, with the number of a hyper-parameter on which all methods agree."""
    found: dict[str, set[str]] = {}
    for defaults in subject.defaults.values():
        for name, text in defaults.items():
            found.setdefault(name, set()).add(text)
    agreed = {name: yaml.safe_load(texts.pop()) for name, texts in found.items() if len(texts) == 1 and name in values}
    numbers = {name: value for name, value in agreed.items() if isinstance(value, int | float)}
    return {name: value for name, value in (numbers | without_nothing(values)).items() if name != DRY_RUN}


def without_nothing(values: "Flat") -> "Flat":
    """Return the settings that have a value."""
    return {name: value for name, value in values.items() if value is not None}


def _add_options(parser: Parser, command: str, subject: Subject, extend: Callable[[Parser], None]) -> None:
    parser.add_argument("--config", action=ActionConfigFile, metavar="FILE", help="read settings from a YAML file")
    parser.add_argument("--command", default=command, help=SUPPRESS)
    parser.add_argument("--problem", default=subject.problem, help="the problem, if it is not the first argument")
    group = parser.add_argument_group("methods")
    group.add_argument(
        "--algorithm",
        type=list[str] | str,
        default=list(subject.methods),
        metavar="NAME",
        help="one or several methods: NAME or 'NAME(option=value, …)'",
    )
    group.add_argument(
        "--seeds",
        type=list[int] | int | str,
        default=3,
        help="the number of seeds (3 for 0, 1, 2), or the seeds: 5,6,7",
    )
    hyper_parameters = parser.add_argument_group("hyper-parameters, for all chosen methods that have them")
    hyper_parameters.add_argument(
        f"--{SEND_U}", type=str, metavar="HOW", help=f"how u is sent, for methods that share it: {spellings()}"
    )
    parser.add_class_arguments(Plan, as_group=True)
    parser.set_defaults(dict(subject.recommended.plan))
    before = set(parser.known_options())
    _add_options_of_problem(parser, subject)
    of_problem = set(parser.known_options()) - before
    group = parser.add_argument_group("start")
    group.add_argument(
        "--init",
        type=str,
        metavar="MODEL",
        help="start from this model: a run folder (its chosen model; FOLDER:METHOD if it has several methods), or a "
        ".safetensors file with the weights of a network. It may come from another problem with the same network",
    )
    group.add_argument("--fresh_last_layer", action="store_true", help="with --init, start with a new last layer")
    group = parser.add_argument_group("execution")
    group.add_argument(
        "--engine", choices=list(ENGINES), default="simulation", help="what runs the clients (see: fedcso list engines)"
    )
    group.add_argument("--ranks", type=int, help="processes of the engine distributed; by default one for each core")
    group.add_argument(
        "--estimator",
        default="plain",
        metavar="NAME",
        help=f"gradient estimator: {', '.join(ESTIMATORS)}, or your own (path.py:name); {AUTO} chooses one by its "
        "error at x_0, and says why",
    )
    group.add_argument("--device", type=str, default="cpu", help="torch device")
    group.add_argument(
        "--checkpoint_rounds", type=int, default=0, help="rounds between checkpoints; 0: use --checkpoint-seconds"
    )
    group.add_argument("--checkpoint_seconds", type=float, default=30.0, help="seconds between checkpoints")
    group.add_argument("--track", choices=list(TRACKERS), default="none", help="log metrics to a tracker as well")
    group.add_argument("--out", type=str, default="runs", metavar="FOLDER", help="where run folders are created")
    group.add_argument("--name", type=str, help="a name for the run folder; by default the problem's")
    extend(parser)
    taken = parser.known_options()
    for name, having in sorted(subject.owners.items()):
        if name in taken:  # by another option; the hyper-parameter can still be set as NAME(option=value)
            continue
        default = subject.recommended.settings.get(name) if name in subject.usable else None
        words = _describe_parameter(name, having, subject, recommends=default is not None)
        hyper_parameters.add_argument(f"--{name}", type=int | float | str, metavar="VALUE", default=default, help=words)
    parser.shorten_help({*COMMON, *of_problem, *subject.usable})


def _describe_parameter(name: str, having: Sequence[str], subject: Subject, recommends: bool) -> str:
    """Return the help of a hyper-parameter: the methods to run that have it, and their defaults."""
    chosen = {method: known[name] for method, known in subject.defaults.items() if name in known}
    if not chosen:
        return f"for {', '.join(having)}"
    others = len(set(having) - {method.partition("(")[0] for method in chosen})
    words = f"for {', '.join(chosen)}" + (f" and {others} other methods" if others else "")
    if recommends:
        return words
    values = set(chosen.values())
    shown = values.pop() if len(values) == 1 else ", ".join(f"{method} {value}" for method, value in chosen.items())
    return f"{words} (default: {shown})"


def _add_options_of_problem(parser: Parser, subject: Subject) -> None:
    """Add the options of a problem, or say how to see them if none is named."""
    if subject.problem is None or subject.maker is None:
        parser.add_argument_group(
            "options of the problem",
            f"{parser.prog} --help shows them, and what the problem recommends for the others. "
            f"PROBLEM is your own (path.py:name, module:name) or one of {', '.join(PROBLEMS)}.",
        )
        return
    add_problem_options(parser, subject.maker, subject.problem)


def add_problem_options(parser: Parser, maker: "TaskMaker", problem: str) -> None:
    """Add the arguments of a problem's function as options; raise `FedcsoError` if one of them can't be an option."""
    taken = parser.known_options()
    try:
        for name, argument in inspect.signature(maker).parameters.items():
            if argument.kind in (argument.VAR_POSITIONAL, argument.VAR_KEYWORD):
                continue  # jsonargparse finds the arguments of the function to which they are passed
            if name in taken:
                raise FedcsoError(
                    f"problem: the argument {name!r} of {problem} is also an option of {parser.prog}; rename it"
                )
            if argument.annotation is argument.empty and argument.default is argument.empty:
                raise FedcsoError(
                    f"problem: the argument {name!r} of {problem} has no type; add one, as in `{name}: int`"
                )
        parser.add_function_arguments(maker, as_group=True)
    except ValueError as error:  # a function without a signature, or a type that jsonargparse does not know
        reason = re.sub(r" from <.*?>", "", str(error))
        raise FedcsoError(f"problem: the arguments of {problem} can't be options: {reason}") from error


def add_sweep_options(parser: Parser) -> None:
    """Add the options of a sweep."""
    group = parser.add_argument_group("the sweep")
    group.add_argument("--grid", type=list[str] | str, default=[], metavar="NAME=VALUE,VALUE", help="values to try")
    group.add_argument("--search", type=list[str] | str, default=[], metavar="NAME=LOW:HIGH", help="a range to search")
    group.add_argument("--trials", type=int, default=20, help="the number of settings that a search tries")
    group.add_argument("--metric", help="the metric that decides, on validation data; by default the judge's")
    group.add_argument(
        "--tuning_seeds",
        type=list[int] | int | str,
        default=[1000, 1001, 1002],
        help="seeds of the runs that are compared",
    )
