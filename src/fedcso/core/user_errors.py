"""Say which line of a user's own code raised an error, and what it was working on, instead of showing a traceback."""

import sysconfig
from collections.abc import Iterator
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

from fedcso.core.errors import FedcsoError
from fedcso.core.user_code import LOADED

PACKAGE = Path(__file__).parent.parent
INSTALLED = tuple(Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib", "platlib"))
LONGEST = 300
"""Characters of another package's message that are shown; torch writes pages on some mistakes."""


class UserCodeError(FedcsoError):
    """An exception in a user's own code; the message names the line, the function and the shapes."""


def explain(error: BaseException) -> UserCodeError | None:
    """Return what to say of an exception that concerns a user's code; None if it can't be due to any.

    If none of its lines was at work, it may have returned something that did not fit: `fedcso check` finds out.
    """
    if _last_own(error.__traceback__) is not None:
        return UserCodeError(describe_error(error))
    if not LOADED:
        return None
    names = list(LOADED.values())
    return UserCodeError(
        f"{_first_line(error)}, raised while using what {' and '.join(names)} returned; to find out what does not fit: "
        f"fedcso check {names[0]}"
    )


def describe_error(error: BaseException) -> str:
    """Return the user's line that raised an error, its function with the shapes of its arguments, and the error."""
    found = _last_own(error.__traceback__)
    if found is None:
        return _first_line(error)
    frame, number = found
    function = f"{frame.f_code.co_name}({', '.join(_shapes(frame))})"
    return f"{_short(frame.f_code.co_filename)}:{number}, in {function}: {_first_line(error)}"


def describe_shapes(value: Any) -> str:
    """Return the shape of a tensor, or of all tensors in a tree, as it is written in Python; empty for other things."""
    if hasattr(value, "shape"):
        return str(tuple(value.shape))
    if isinstance(value, dict):
        parts = {str(key): describe_shapes(part) for key, part in value.items()}
        return "{" + ", ".join(f"{key}: {shown}" for key, shown in parts.items()) + "}" if any(parts.values()) else ""
    if isinstance(value, list | tuple):
        shown = [describe_shapes(part) for part in value]
        return f"({', '.join(shown)})" if any(shown) else ""
    return ""


def _last_own(trace: TracebackType | None) -> tuple[FrameType, int] | None:
    """Return the innermost frame of the user's code, and its line."""
    own = None
    while trace:
        if _is_own(trace.tb_frame.f_code.co_filename):
            own = trace.tb_frame, trace.tb_lineno
        trace = trace.tb_next
    return own


def _is_own(file: str) -> bool:
    """Return whether code that fedcso has called is the user's: neither ours nor of an installed package."""
    return not file.startswith("<") and not any(map(Path(file).is_relative_to, (PACKAGE, *INSTALLED)))


def _shapes(frame: FrameType) -> Iterator[str]:
    """Yield the arguments of a function that are tensors or hold some, with their shapes."""
    code = frame.f_code
    for name in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]:
        if name in frame.f_locals and (shown := describe_shapes(frame.f_locals[name])):
            yield f"{name} {shown}"


def _first_line(error: BaseException) -> str:
    text = (str(error).strip().splitlines() or [""])[0]
    text = text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _short(file: str) -> str:
    """Return a path relative to the working folder if it is below it."""
    path = Path(file)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else file
