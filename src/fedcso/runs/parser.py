"""The argument parser of the command line: jsonargparse with short help and errors that say what to do."""

import json
import re
from argparse import SUPPRESS, Action
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any, NoReturn

import jsonargparse
from jsonargparse import set_parsing_settings

from fedcso.core.errors import FedcsoError

# The help of an option is the docstring below the field of its class.
set_parsing_settings(docstring_parse_attribute_docstrings=True)


class UsageError(FedcsoError):
    """A command line that can't be understood; the message says why."""


class Parser(jsonargparse.ArgumentParser):
    """A parser of options from the command line or a YAML file.

    Option names may be written with dashes or underscores. The error for an unknown option suggests the nearest ones.
    """

    def __init__(self, **settings: Any):
        self._common: frozenset[str] | None = None
        super().__init__(allow_abbrev=False, formatter_class=Formatter, **settings)

    def shorten_help(self, common: Iterable[str]) -> None:
        """Show only these options in --help, and all of them in --help-all."""
        self.add_argument("--help_all", action=_PrintFullHelp, help="show all options and exit")
        self._common = frozenset({*common, "help", HELP_ALL})

    def error(self, message: str, ex: Exception | None = None) -> NoReturn:
        """Raise `UsageError` with an explanation of jsonargparse's message."""
        raise UsageError(self._explain(" ".join(message.split())))

    def parse_args(self, args: Sequence[str] | None = None, *rest: Any, **more: Any) -> Any:  # type: ignore[override]
        """Parse arguments as jsonargparse does, after `use_underscores` and `join_repeated`."""
        try:
            return super().parse_args(join_repeated(use_underscores(args or [])), *rest, **more)
        except OverflowError:
            self.error("a whole number is too large for the computer's floating-point numbers; give a smaller one")

    def format_help(self, *formatter: Any) -> str:
        """Return the help, with dashes in the names of options; the short one if there is one."""
        return self._format(self._common, *formatter)

    def format_full_help(self) -> str:
        """Return the help with all options."""
        return self._format(None)

    def _format(self, common: frozenset[str] | None, *formatter: Any) -> str:
        rare = [one for one in self._actions if one.option_strings and common is not None and one.dest not in common]
        rare = [one for one in rare if one.help != SUPPRESS]
        helps, epilog = [one.help for one in rare], self.epilog
        try:
            for one in rare:
                one.help = SUPPRESS
            if rare:
                self.epilog = f"{len(rare)} more options: {self.prog} --help-all\n\n{epilog or ''}"
            text = super().format_help(*formatter)
        finally:
            self.epilog = epilog
            for one, words in zip(rare, helps, strict=True):
                one.help = words
        return re.sub(r"--\w+", lambda option: option[0].replace("_", "-"), text)

    def known_options(self) -> list[str]:
        """Return the names of all options."""
        return [action.dest for action in self._actions if action.dest not in ("help", HELP_ALL, "config")]

    def _explain(self, message: str) -> str:
        see = f"(see: {self.prog} --help)"
        if found := re.fullmatch(r"unrecognized arguments: (\S+).*", message):
            name = found[1].partition("=")[0]
            if not name.startswith("--"):
                return f"unexpected argument {name!r} {see}"
            return f"unknown option {_as_option(name)}{self._suggest(name, _as_option)} {see}"
        if found := re.fullmatch(r"Option '(.*)' is not accepted", message):  # in a file
            return f"unknown option {found[1]!r}{self._suggest(found[1], str)} {see}"
        if found := re.fullmatch(r"the following arguments are required: (.*)", message):
            names = found[1].split(", ")
            return f"{' and '.join(names)} {'is' if len(names) == 1 else 'are'} missing {see}"
        if found := re.fullmatch(r"argument (--\w+): expected one argument", message):
            return f"{_as_option(found[1])} is given without a value {see}"
        if found := re.fullmatch(r"argument --(\w+): invalid choice: (.*) \(choose from (.*)\)", message):
            return f"{found[1]} = {found[2]} must be one of {found[3]}"
        if found := re.fullmatch(_WRONG_TYPE, message):
            return f"{found[1]} = {_quote(found[3])} must be {_allowed(found[2])}"
        return message[:1].lower() + message[1:]

    def _suggest(self, name: str, spell: Any) -> str:
        close = get_close_matches(name.lstrip("-").replace("-", "_"), self.known_options(), n=3)
        return f"; did you mean {' or '.join(spell(one) for one in close)}?" if close else ""


HELP_ALL = "help_all"


class _PrintFullHelp(Action):
    """Prints the help with all options and ends the process, as argparse's own action does."""

    def __init__(self, option_strings: Sequence[str], dest: str, **settings: Any):
        settings |= {"default": SUPPRESS, "nargs": 0}
        super().__init__(option_strings, dest, **settings)

    def __call__(self, parser: Any, *given: Any) -> None:
        print(parser.format_full_help(), end="")
        parser.exit()


_WRONG_TYPE = r'Parser key "([\w.]+)": (.*?)\.? (?:Given value type: .*? )?(?:Got|Given) value: ?(.*)'
"""jsonargparse's words for the option, for what it expected, and for the value that it got."""


def _as_option(name: str) -> str:
    return "--" + name.lstrip("-").replace("_", "-")


def _quote(value: str) -> str:
    """Put quotes around a value that jsonargparse reports without them, unless it is a number, a list or a mapping."""
    return value if re.match(r"[-+.\d\[{]", value) else repr(value)


_KINDS = {
    "<class 'float'>": "a number",
    "<class 'int'>": "a whole number",
    "<class 'bool'>": "true or false",
    "<class 'str'>": "text",
    "list[": "a list",
}


def _allowed(expected: str) -> str:
    """Return in words what jsonargparse expected: one of some choices, or a value of one of some types."""
    if choices := re.search(r"Literal\[(.*?)\]", expected):
        return f"one of {choices[1]}"
    kinds = [words for kind, words in _KINDS.items() if kind in expected]
    if _KINDS["<class 'float'>"] in kinds and _KINDS["<class 'int'>"] in kinds:
        kinds.remove(_KINDS["<class 'int'>"])
    return " or ".join(kinds) or expected


class Formatter(jsonargparse.DefaultHelpFormatter):
    """Help that keeps the line breaks of texts, and shows defaults where there are any, but no types."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "\n".join(indent + line for line in text.splitlines())

    def _get_help_string(self, action: Action) -> str:
        text = _GENERAL.get(action.dest, action.help or "")
        if text.startswith("(default: "):  # an option without help, whose default jsonargparse has added already
            return text
        if text.endswith("."):  # the docstring of a field, which is a sentence
            is_word = text[1].islower() or text.startswith("A ")  # not a symbol, as in "B, outer samples"
            text = (text[0].lower() if is_word else text[0]) + text[1:-1]
        if not action.option_strings or action.nargs == 0 or action.default in (None, "", [], SUPPRESS):
            return text
        return f"{text} (default: {_as_typed(action.default)})"

    def _format_action_invocation(self, action: Action) -> str:
        # jsonargparse's second form of a list, `--algorithm+ NAME`, is not needed here: options may be repeated.
        return re.sub(r", --\w+\+ \S+", "", super()._format_action_invocation(action))


_GENERAL = {
    "help": "show this help and exit",
    "print_config": "print the complete configuration as YAML and exit",
}
"""Help texts of options that jsonargparse adds to every parser."""


def _as_typed(value: Any) -> str:
    """Return a default as it is written on the command line."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return " ".join(map(str, value)) if all(isinstance(one, str) for one in value) else ",".join(map(str, value))
    return str(value)


def use_underscores(arguments: Sequence[str]) -> list[str]:
    """Return arguments with underscores in the names of options: `--local-steps` as `--local_steps`."""

    def fix(argument: str) -> str:
        if not re.match(r"--[\w-]+(=|$)", argument):
            return argument
        name, equals, value = argument.partition("=")
        return "--" + name[2:].replace("-", "_") + equals + value

    return [fix(argument) for argument in arguments]


REPEATABLE = frozenset({"--algorithm", "--grid", "--search"})
"""Options that take several values, all at once or by being repeated."""


def join_repeated(arguments: list[str]) -> list[str]:
    """Return arguments in which each repeatable option occurs once, with all its values as a JSON list."""
    values: dict[str, list[str]] = {}
    rest: list[str] = []
    place = rest
    for argument in arguments:
        option, equals, value = argument.partition("=")
        if not argument.startswith("--"):
            place.append(argument)
        elif option in REPEATABLE:
            place = values.setdefault(option, [])
            place += [value] if equals else []
        else:
            place = rest
            place.append(argument)
    for option, several in values.items():
        if not several:
            raise UsageError(f"{option} is given without a value")
    return rest + [part for option, several in values.items() for part in (option, json.dumps(several))]


EXAMPLES = "\nexamples:\n"
"""What separates the description from the examples in the docstring of a command."""


def split_description(docstring: str) -> tuple[str, str]:
    """Return the description of a command and its examples, which its help shows before and after the options."""
    description, heading, examples = docstring.partition(EXAMPLES)
    return description.strip(), (heading + examples).strip()


def simple_parser(command: str, docstring: str) -> Parser:
    """Return a parser for a command without a problem; the command's docstring is its help."""
    description, examples = split_description(docstring)
    return Parser(prog=f"fedcso {command}", description=description, epilog=examples)


DRY_RUN = "dry_run"


def add_dry_run(parser: Parser) -> None:
    """Add the option that shows what a command would do."""
    parser.add_argument(
        f"--{DRY_RUN}", action="store_true", help="show what would be done, and estimate its time and memory"
    )
