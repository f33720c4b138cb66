"""Names from a command line or a file, turned into objects: `FCSG-M(momentum=0.5)`, `my_file.py:my_task`."""

import ast
from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from fedcso.algorithms import ALGORITHMS
from fedcso.algorithms.frugal import FULL, Frugal, sending, shares_u, spelled
from fedcso.core.algorithm import Algorithm
from fedcso.core.errors import FedcsoError, InvalidValue, UnknownName
from fedcso.core.schedules import SCHEDULES
from fedcso.core.task import Task
from fedcso.problems import PROBLEMS
from fedcso.runs import own

TaskMaker = Callable[..., Task]

SEND_U = "send_u"
"""A setting of all methods that share u: how it travels."""


def hyper_parameters(kind: type[Algorithm]) -> list[str]:
    """The names of a method's hyper-parameters."""
    own = [field.name for field in fields(kind)]  # type: ignore[arg-type]  # algorithms are dataclasses
    return [*own, SEND_U] if shares_u(kind) else own


def build(kind: type[Algorithm], options: dict[str, Any]) -> Algorithm:
    """A method with some of its settings."""
    own = {name: value for name, value in options.items() if name != SEND_U}
    return sending(options.get(SEND_U, FULL), kind(**own))


def settings_of(algorithm: Algorithm) -> dict[str, Any]:
    """All settings of a method, by name."""
    if isinstance(algorithm, Frugal):
        return vars(algorithm.base) | {SEND_U: spelled(algorithm)}
    return dict(vars(algorithm))


def algorithms(specs: Sequence[str], common: dict[str, Any]) -> dict[str, Algorithm]:
    """Methods by the way they were asked for; `common` settings go to every method that has them."""
    if not specs:
        raise InvalidValue("algorithm", [], "at least one method (fedcso list algorithms)")
    result: dict[str, Algorithm] = {}
    used: set[str] = set()
    for spec in specs:
        if spec in result:
            raise InvalidValue("algorithm", spec, "named once; write different settings as NAME(option=value)")
        kind, options = parse_algorithm(spec)
        known = hyper_parameters(kind)
        result[spec] = build(kind, {k: v for k, v in common.items() if k in known} | options)
        used |= common.keys() & set(known)
    for name in common.keys() - used:
        raise InvalidValue(name, common[name], f"left out: none of {', '.join(specs)} has it")
    return result


def parse_algorithm(spec: str) -> tuple[type[Algorithm], dict[str, Any]]:
    """`NAME` or `NAME(option=value, …)` as a class and its options; one's own NAME is `path.py:Name`."""
    name, bracket, rest = spec.partition("(")
    kind = _kind(name.strip())
    if not bracket:
        return kind, {}
    try:
        call = ast.parse(f"f({rest}", mode="eval").body
    except SyntaxError:
        call = None
    if not isinstance(call, ast.Call) or call.args or any(keyword.arg is None for keyword in call.keywords):
        raise InvalidValue("algorithm", spec, "NAME or NAME(option=value, option=value)")
    options = {str(keyword.arg): _value(str(keyword.arg), keyword.value) for keyword in call.keywords}
    for option in options:
        if option not in hyper_parameters(kind):
            raise UnknownName(f"option of {name.strip()}", option, hyper_parameters(kind))
    return kind, options


def _kind(name: str) -> type[Algorithm]:
    by_lower = {known.lower(): known for known in ALGORITHMS}
    if name.lower() in by_lower:
        return ALGORITHMS[by_lower[name.lower()]]
    if not name.rpartition(":")[0]:
        raise UnknownName("algorithm", name, [*ALGORITHMS, "path.py:Name", "module:Name"])
    found: Any = own.load("algorithm", name)
    if not (is_dataclass(found) and isinstance(found, type) and issubclass(found, Algorithm)):
        raise InvalidValue("algorithm", name, "a dataclass that is a fedcso.Algorithm")
    kind: type[Algorithm] = found
    return kind


def parse_value(name: str, text: Any) -> Any:
    """A number, or a schedule such as `cosine(0.1, 5000)`."""
    if not isinstance(text, str):
        return text
    try:
        return _value(name, ast.parse(text.strip(), mode="eval").body)
    except SyntaxError:
        raise InvalidValue(name, text, _VALUES) from None


def parse_values(name: str, text: str) -> list[Any]:
    """Several of them, separated by commas."""
    try:
        nodes = ast.parse(f"[{text}]", mode="eval").body
    except SyntaxError:
        nodes = None
    if not isinstance(nodes, ast.List) or not nodes.elts:
        raise InvalidValue(name, text, "values separated by commas")
    return [_value(name, node) for node in nodes.elts]


def spell(value: Any) -> str:
    """A number or schedule as it is written in a specification."""
    for name, kind in SCHEDULES.items():
        if isinstance(value, kind):
            return f"{name}({', '.join(repr(part) for part in vars(value).values())})"
    return repr(value)


_VALUES = "a number, or a schedule: " + ", ".join(f"{name}(…)" for name in SCHEDULES)


def _value(name: str, node: ast.expr) -> Any:
    if name == SEND_U:
        return node.value if isinstance(node, ast.Constant) else ast.unparse(node)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        if node.func.id not in SCHEDULES:
            raise UnknownName("schedule", node.func.id, SCHEDULES)
        try:
            return SCHEDULES[node.func.id](
                *(ast.literal_eval(a) for a in node.args),
                **{str(k.arg): ast.literal_eval(k.value) for k in node.keywords},
            )
        except ValueError as error:
            reason = str(error) if isinstance(error, InvalidValue) else "its arguments are numbers"
            raise InvalidValue(name, ast.unparse(node), f"called rightly: {reason}") from error
        except TypeError as error:
            raise InvalidValue(name, ast.unparse(node), f"called rightly: {error}") from error
    try:
        return ast.literal_eval(node)
    except (TypeError, ValueError):
        raise InvalidValue(name, ast.unparse(node), _VALUES) from None


def task_maker(name: str) -> TaskMaker:
    """A built-in problem by name, or one's own as `path.py:name` or `module:name`.

    One's own may be a function that returns a `Task` (its arguments become options), or a `Task`.
    """
    if name in PROBLEMS:
        return PROBLEMS[name]
    if not name.rpartition(":")[0]:
        raise UnknownName("problem", name, [*PROBLEMS, "path.py:name", "module:name"])
    found = own.load("problem", name)
    if isinstance(found, Task):
        return lambda: found
    if not callable(found):
        raise InvalidValue("problem", name, "a fedcso.Task, or a function that returns one")
    maker: TaskMaker = found
    return maker


def make_task(maker: TaskMaker, options: dict[str, Any], name: str = "problem") -> Task:
    """Call a task function; what it returns must be a task."""
    try:
        task = maker(**options)
    except FedcsoError:
        raise
    except Exception as error:
        path = Path(name.rpartition(":")[0] or name)
        raise FedcsoError(
            f"problem: {name}{own.line_in(path, error)} raised {type(error).__name__}: {error}"
        ) from error
    if not isinstance(task, Task):
        raise InvalidValue("problem", type(task).__name__, "a fedcso.Task, or a function that returns one")
    return task
