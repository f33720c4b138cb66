"""Load objects from a user's file or module: `path.py:name`, `module:name`.

A file is executed once for each content, so every request for a name in it returns the same object: two settings of a
method are settings of the same class. Errors in a user's file are reported with their line.
"""

import hashlib
import importlib
import importlib.util
import sys
from functools import cache
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

from fedcso.core.errors import FedcsoError, UnknownName

HERE = Path()

_PREFIX = "fedcso_own_"
"""What the names of modules begin with that were loaded from a path."""

LOADED: dict[Path, str] = {}
"""The user's files that were loaded in this process, and the name by which each was last asked for."""


def is_own(name: str) -> bool:
    """Return whether a name refers to a user's file or module: `path.py:name`, `module:name`."""
    return bool(name.rpartition(":")[0])


def load(field: str, name: str, root: Path = HERE) -> Any:
    """Return the object that `path.py:name` or `module:name`, given for `field`, refers to.

    Paths are relative to `root`. Raise `FedcsoError` if the file or module can't be loaded, `UnknownName` if it does
    not define the name.
    """
    where, _, attribute = name.rpartition(":")
    module = _load_file(field, root / where) if where.endswith(".py") else _load_module(field, where)
    if module.__file__ is not None:  # a namespace package has none
        LOADED[Path(module.__file__).resolve()] = name
    if not hasattr(module, attribute):
        names = [key for key, value in vars(module).items() if not key.startswith("_") and _defines(module, value)]
        raise UnknownName(f"name in {where}", attribute, names)
    return getattr(module, attribute)


def _defines(module: ModuleType, value: Any) -> bool:
    """Return whether a value is the module's own: no module, and no class or function that it has imported."""
    if isinstance(value, type | FunctionType):
        return value.__module__ == module.__name__
    return not isinstance(value, ModuleType)


def join_root(name: str, root: Path) -> str:
    """Return `path.py:name` with its path joined to `root`; `module:name` is returned unchanged."""
    where, _, attribute = name.rpartition(":")
    return f"{root / where}:{attribute}" if where.endswith(".py") else name


class Source(NamedTuple):
    """A user's file and its content."""

    path: Path
    content: bytes

    @property
    def fingerprint(self) -> str:
        """Return the SHA-256 of the content."""
        return hashlib.sha256(self.content).hexdigest()


def read_source(field: str, name: str, root: Path = HERE) -> Source:
    """Return the file that defines `path.py:name` or `module:name`."""
    where = name.rpartition(":")[0]
    path = root / where if where.endswith(".py") else Path(str(_load_module(field, where).__file__))
    return Source(path, _read(field, path))


def file_of(module: ModuleType) -> Path | None:
    """Return the file of a module that was loaded as `path.py:name`; None for one that Python has imported."""
    return Path(str(module.__file__)) if module.__name__.startswith(_PREFIX) else None


def describe_line(path: Path, error: BaseException) -> str:
    """Return the line of the user's file that raised an error, as words for a message; empty if there is none."""
    trace, line = error.__traceback__, ""
    while trace:
        if Path(trace.tb_frame.f_code.co_filename).resolve() == path.resolve():
            line = f", line {trace.tb_lineno},"
        trace = trace.tb_next
    return line


def _load_module(field: str, name: str) -> ModuleType:
    sys.path.insert(0, "")
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise FedcsoError(f"{field}: module {name!r} can't be imported: {error}") from error
    finally:
        sys.path.remove("")


def _load_file(field: str, path: Path) -> ModuleType:
    content = _read(field, path)
    try:
        return _execute(path.resolve(), content)
    except Exception as error:
        line = describe_line(path, error)
        raise FedcsoError(f"{field}: {path}{line} raised {type(error).__name__}: {error}") from error


def _read(field: str, path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise FedcsoError(f"{field}: there is no file {path}") from None
    except OSError as error:
        raise FedcsoError(f"{field}: {path} can't be read: {error.strerror}") from error


@cache
def _execute(path: Path, content: bytes) -> ModuleType:
    """Execute a file with this content; Python's import could run a cached older version."""
    # Not the bare stem: a user's statistics.py must not hide Python's, nor one of two files with the same name.
    name = f"{_PREFIX}{path.stem}_{hashlib.sha256(str(path).encode() + content).hexdigest()[:8]}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None  # every .py file has one
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look it up
    exec(compile(content, path, "exec"), vars(module))
    return module
