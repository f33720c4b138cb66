"""Names from a command line or a file, turned into objects: `FCSG-M(momentum=0.5)`, `my_file.py:my_task`."""

import ast
from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch

from fedcso.algorithms import ALGORITHMS
from fedcso.codecs import CODECS
from fedcso.core.algorithm import Algorithm
from fedcso.core.codec import Codec, full
from fedcso.core.errors import FedcsoError, InvalidValue, UnknownName
from fedcso.core.schedules import SCHEDULES
from fedcso.core.task import Task
from fedcso.problems import PROBLEMS
from fedcso.runs import own

TaskMaker = Callable[..., Task]

SEND_U = "send_u"
"""The setting that names a codec: how u travels, for methods that share it."""


class Method(NamedTuple):
    """A method with its settings, and how what it shares travels."""

    algorithm: Algorithm
    codec: Codec


def hyper_parameters(kind: type[Algorithm]) -> list[str]:
    """The names of a method's hyper-parameters."""
    return [field.name for field in fields(kind)]  # type: ignore[arg-type]  # algorithms are dataclasses


def methods(specs: Sequence[str], common: dict[str, Any]) -> dict[str, Method]:
    """Methods by the way they were asked for; `common` settings go to every method that has them."""
    if not specs:
        raise InvalidValue("algorithm", [], "at least one method (fedcso list algorithms)")
    result: dict[str, Method] = {}
    used: set[str] = set()
    for spec in specs:
        if spec in result:
            raise InvalidValue("algorithm", spec, "named once; write different settings as NAME(option=value)")
        kind, options = parse_algorithm(spec)
        settings = common | options
        algorithm = kind(**{name: value for name, value in settings.items() if name in hyper_parameters(kind)})
        codec = settings.get(SEND_U, full)
        used |= set(hyper_parameters(kind)) | ({SEND_U} if _suits(codec, algorithm) else set())
        if SEND_U in options and SEND_U not in used:
            raise InvalidValue(SEND_U, spell(codec), f"left out: {spec.partition('(')[0].strip()} shares no u")
        result[spec] = Method(algorithm, codec if _suits(codec, algorithm) else full)
    for name in common.keys() - used:
        raise InvalidValue(name, spell(common[name]), f"left out: none of {', '.join(specs)} has it")
    return result


def _suits(codec: Codec, algorithm: Algorithm) -> bool:
    """True if the method shares what the codec is made for; any x will do to see it."""
    return codec.needs <= algorithm.init(torch.zeros(())).shared.keys()


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
    known = [*hyper_parameters(kind), SEND_U]
    for option in options:
        if option not in known:
            raise UnknownName(f"option of {name.strip()}", option, known)
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
    return _value(name, _parsed(name, text, _VALUES))


def _parsed(name: str, text: str, allowed: str) -> ast.expr:
    try:
        return ast.parse(text.strip(), mode="eval").body
    except SyntaxError:
        raise InvalidValue(name, text, allowed) from None


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
    """A number, schedule or codec as it is written in a specification."""
    for name, kind in {**SCHEDULES, **CODECS}.items():
        if isinstance(value, kind):
            settings = ", ".join(repr(part) for part in vars(value).values())
            return f"{name}({settings})" if settings else name
    return repr(value)


_VALUES = "a number, or a schedule: " + ", ".join(f"{name}(…)" for name in SCHEDULES)
CODEC_NAMES = ", ".join(f"{name}(k)" if fields(kind) else name for name, kind in CODECS.items())


def _value(name: str, node: ast.expr) -> Any:
    if name == SEND_U:
        return _codec(node)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        if node.func.id not in SCHEDULES:
            raise UnknownName("schedule", node.func.id, SCHEDULES)
        return _called(name, SCHEDULES[node.func.id], node)
    try:
        return ast.literal_eval(node)
    except (TypeError, ValueError):
        raise InvalidValue(name, ast.unparse(node), _VALUES) from None


def _codec(node: ast.expr) -> Codec:
    """`int8`, `'int8'` or `every(3)` as a codec."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        node = _parsed(SEND_U, node.value, f"one of {CODEC_NAMES}")
    call = ast.Call(node, [], []) if isinstance(node, ast.Name) else node
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in CODECS):
        raise InvalidValue(SEND_U, ast.unparse(node), f"one of {CODEC_NAMES}")
    codec: Codec = _called(SEND_U, CODECS[call.func.id], call)
    return codec


def _called(name: str, kind: Callable[..., Any], node: ast.Call) -> Any:
    """What a call with plain values for arguments gives."""
    try:
        return kind(
            *(ast.literal_eval(a) for a in node.args),
            **{str(k.arg): ast.literal_eval(k.value) for k in node.keywords},
        )
    except ValueError as error:
        reason = str(error) if isinstance(error, InvalidValue) else "its arguments are numbers"
        raise InvalidValue(name, ast.unparse(node), f"called rightly: {reason}") from error
    except TypeError as error:
        raise InvalidValue(name, ast.unparse(node), f"called rightly: {error}") from error


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
