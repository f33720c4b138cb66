"""Parse values and names from options or files: `cosine(0.1, 5)`, `int8`, `my_file.py:task`."""

import ast
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fedcso.codecs import CODECS, spellings
from fedcso.core import user_code
from fedcso.core.codec import Codec
from fedcso.core.errors import FedcsoError, InvalidValue, UnknownName
from fedcso.core.estimator import Estimator
from fedcso.core.schedules import SCHEDULES
from fedcso.core.task import Task
from fedcso.estimators import AUTO, ESTIMATORS
from fedcso.problems import PROBLEMS

TaskMaker = Callable[..., Task]


Parse = Callable[[str, Any], Any]
"""(name of a setting, text or node) → value."""


def parse_value(name: str, given: Any) -> Any:
    """Parse a number or a schedule such as `cosine(0.1, 5000)`; return anything but text unchanged."""
    if not isinstance(given, str):
        return given
    node = _parsed(name, given, _VALUES)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        if node.func.id not in SCHEDULES:
            raise UnknownName("schedule", node.func.id, SCHEDULES)
        return _called(name, SCHEDULES[node.func.id], node)
    if isinstance(node, ast.Name) and node.id in _TRUTH:
        return _TRUTH[node.id]
    try:
        return ast.literal_eval(node)
    except (TypeError, ValueError):
        raise InvalidValue(name, ast.unparse(node), _VALUES) from None


def parse_words(name: str, given: Any) -> str:
    """Return text without surrounding quotes."""
    text = str(given).strip()
    return text[1:-1] if len(text) > 1 and text[0] in "'\"" and text[0] == text[-1] else text


def parse_codec(name: str, given: Any) -> Codec:
    """Parse a codec such as `int8` or `every(3)`."""
    allowed = f"one of {spellings()}"
    node = _parsed(name, parse_words(name, given), allowed)
    call = ast.Call(node, [], []) if isinstance(node, ast.Name) else node
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in CODECS):
        raise InvalidValue(name, ast.unparse(node), allowed)
    codec: Codec = _called(name, CODECS[call.func.id], call)
    return codec


def parse_several(name: str, text: str, parse: Parse = parse_value) -> list[Any]:
    """Parse comma-separated values."""
    parts = split_at_commas(text)
    if not parts:
        raise InvalidValue(name, text, "values separated by commas")
    return [parse(name, part) for part in parts]


def split_at_commas(text: str) -> list[str]:
    """Split a text at the commas outside brackets and quotes; return an empty list if that is not possible.

    Unlike a parser of Python, it accepts every method's name as a value: `base=CODA+`, `base=my_file.py:Mine`.
    """
    parts, closing, quote = [""], "", ""
    for sign in text:
        if sign == "," and not closing and not quote:
            parts.append("")
            continue
        parts[-1] += sign
        if quote:
            quote = "" if sign == quote else quote
        elif sign in "'\"":
            quote = sign
        elif sign in _BRACKETS:
            closing = _BRACKETS[sign] + closing
        elif sign in _BRACKETS.values():
            if sign != closing[:1]:
                return []
            closing = closing[1:]
    whole = not closing and not quote and all(part.strip() for part in parts)
    return [part.strip() for part in parts] if whole else []


def spell(value: Any) -> str:
    """Format a number, schedule or codec as in a specification."""
    for name, kind in {**SCHEDULES, **CODECS}.items():
        if isinstance(value, kind):
            given = {key: part for key, part in vars(value).items() if part is not None}
            named = len(given) < len(vars(value))  # what is left out moves the others' places
            settings = ", ".join(f"{key}={part!r}" if named else repr(part) for key, part in given.items())
            return f"{name}({settings})" if settings else name
    return repr(value)


_BRACKETS = {"(": ")", "[": "]", "{": "}"}
_TRUTH = {"true": True, "false": False}
_VALUES = "a number, or a schedule: " + ", ".join(f"{name}(…)" for name in SCHEDULES)


def _parsed(name: str, text: str, allowed: str) -> ast.expr:
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError):  # ValueError: a null character, before Python 3.11.4
        raise InvalidValue(name, text, allowed) from None


def _called(name: str, kind: Callable[..., Any], node: ast.Call) -> Any:
    """Evaluate a call whose arguments are literals."""
    try:
        return kind(
            *(ast.literal_eval(a) for a in node.args),
            **{str(k.arg): ast.literal_eval(k.value) for k in node.keywords},
        )
    except ValueError as error:
        reason = str(error) if isinstance(error, InvalidValue) else "its arguments are numbers"
        raise InvalidValue(name, ast.unparse(node), f"a valid call ({reason})") from error
    except TypeError as error:
        raise InvalidValue(name, ast.unparse(node), f"a valid call ({error})") from error


def task_maker(name: str, root: Path = user_code.HERE) -> TaskMaker:
    """Return the function behind a built-in problem's name, or behind one's own as `path.py:name` or `module:name`.

    One's own may be a function that returns a `Task` (its arguments become options), or a `Task`; its path begins at
    `root`.
    """
    if name in PROBLEMS:
        return PROBLEMS[name]
    require_name("problem", name)
    if not user_code.is_own(name):
        raise UnknownName("problem", name, [*PROBLEMS, "path.py:name", "module:name"])
    found = user_code.load("problem", name, root)
    if isinstance(found, Task):
        return lambda: found
    if not callable(found):
        raise InvalidValue("problem", name, "a fedcso.Task, or a function that returns one")
    maker: TaskMaker = found
    return maker


def is_object(text: str) -> bool:
    """Return whether a name stands for an object that only a program has: `<Mine>`."""
    return "<" in text


def require_name(field: str, text: str) -> None:
    """Raise if a name in a configuration stands for an object that only a program has."""
    if is_object(text):
        raise FedcsoError(
            f"{field} = {text!r} was an object of a Python program, which no file describes: go on in Python, with the "
            "same objects, by fedcso.resume(FOLDER, task=TASK, algorithms=[…])"
        )


def make_task(maker: TaskMaker, options: dict[str, Any], name: str = "problem") -> Task:
    """Call a task function; raise if it fails or does not return a task."""
    try:
        task = maker(**options)
    except FedcsoError:
        raise
    except Exception as error:
        path = Path(name.rpartition(":")[0] or name)
        raise FedcsoError(
            f"problem: {name}{user_code.describe_line(path, error)} raised {type(error).__name__}: {error}"
        ) from error
    if not isinstance(task, Task):
        raise InvalidValue("problem", type(task).__name__, "a fedcso.Task, or a function that returns one")
    return task


def find_estimator(name: str, root: Path = user_code.HERE) -> Estimator:
    """Return the estimator with this name, or one's own as `path.py:name` or `module:name`."""
    if name in ESTIMATORS:
        return ESTIMATORS[name]
    if not (isinstance(name, str) and user_code.is_own(name)):  # a file may have anything there
        raise UnknownName(ESTIMATORS.kind, name, [*ESTIMATORS, AUTO, "path.py:name", "module:name"])
    found = user_code.load("estimator", name, root)
    if not isinstance(found, Estimator):
        raise InvalidValue("estimator", name, "a fedcso.Estimator, as the decorator @Estimator makes of a function")
    return found
