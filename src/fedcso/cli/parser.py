"""The command line's parser: jsonargparse, with dashes or underscores, and errors that help."""

import json
import re
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any, NoReturn

import jsonargparse
from jsonargparse import set_parsing_settings

# The help of an option is what stands below the field in its class.
set_parsing_settings(docstring_parse_attribute_docstrings=True)


class Parser(jsonargparse.ArgumentParser):
    """Options from the command line or a YAML file; an unknown one is an error that names the nearest."""

    def __init__(self, **settings: Any):
        super().__init__(allow_abbrev=False, formatter_class=Formatter, **settings)

    def error(self, message: str, ex: Exception | None = None) -> NoReturn:
        """Say what is wrong in a line or two, and end with code 2."""
        raise UsageError(self._explained(message))

    def parse_args(self, args: Sequence[str] | None = None, *rest: Any, **more: Any) -> Any:  # type: ignore[override]
        """As ever, with dashes or underscores in the names of options."""
        return super().parse_args(joined(normalised(args or [])), *rest, **more)

    def known(self) -> list[str]:
        """The names of all options."""
        return [action.dest for action in self._actions if action.dest not in ("help", "config")]

    def _explained(self, message: str) -> str:
        message = re.sub(r"\s*\n\s*", " ", message).strip()
        unknown = re.search(r"Unrecognized arguments: --([\w.-]+)", message, re.I) or re.search(
            r"""(?:key|option)s? ['"]?([\w.]+)['"]?[^.]*(?:not expected|not accepted|does not accept)""",
            message,
            re.I,
        )
        if unknown:
            name = unknown[1].replace("-", "_")
            close = get_close_matches(name, self.known(), n=3)
            hint = f"; did you mean {' or '.join(close)}?" if close else ""
            return f"unknown option {unknown[1]!r}{hint} (see: {self.prog} --help)"
        for kind, words in _KINDS.items():
            message = message.replace(f"Expected a {kind}", f"must be {words}")
        against = r"Does not validate against any of the Union subtypes.*?"
        union = re.search(against + r"\[(.*?)\].*Given value: (.*)", message)
        if union:
            wanted = "a number" if "'str'" not in union[1] else "of another kind, see --help"
            message = message[: union.start()] + f"must be {wanted}, not {union[2]}"
        message = re.sub(r"Expected a typing\.Literal\[(.*?)\]", r"must be one of \1", message)
        message = re.sub(r"\. Got value: (.*)", r", not \1", message)
        field = re.search(r"""(?:Parser key|argument) ["']?(?:--)?([\w.]+)["']?:\s*(.*)""", message)
        if field:
            return f"{field[1]}: {field[2]}"
        return message


_KINDS = {"<class 'float'>": "a number", "<class 'int'>": "a whole number", "<class 'bool'>": "true or false"}


class Formatter(jsonargparse.DefaultHelpFormatter):
    """Help that keeps the examples' lines as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "\n".join(indent + line for line in text.splitlines())


class UsageError(Exception):
    """The command line can't be understood; the message says why."""


def normalised(arguments: Sequence[str]) -> list[str]:
    """`--local-steps` as `--local_steps`: both are fine."""

    def fix(argument: str) -> str:
        if not re.match(r"--[\w-]+(=|$)", argument):
            return argument
        name, equals, value = argument.partition("=")
        return "--" + name[2:].replace("-", "_") + equals + value

    return [fix(argument) for argument in arguments]


SEVERAL = frozenset({"--algorithm", "--grid", "--search"})
"""Options that take several values, at once or one by one."""


def joined(arguments: list[str]) -> list[str]:
    """The values of such options as one list each, so that none is lost where an option is given twice."""
    values: dict[str, list[str]] = {}
    rest: list[str] = []
    place = rest
    for argument in arguments:
        option, equals, value = argument.partition("=")
        if not argument.startswith("--"):
            place.append(argument)
        elif option in SEVERAL:
            place = values.setdefault(option, [])
            place += [value] if equals else []
        else:
            place = rest
            place.append(argument)
    for option, several in values.items():
        if not several:
            raise UsageError(f"{option[2:]}: expected at least one argument")
    return rest + [part for option, several in values.items() for part in (option, json.dumps(several))]


def simple_parser(command: str, description: str) -> Parser:
    """A parser for a command without a problem; its docstring is the help."""
    summary, _, rest = description.partition("\n")
    return Parser(prog=f"fedcso {command}", description=summary, epilog=rest.strip())
