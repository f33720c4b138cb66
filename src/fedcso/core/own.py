"""Objects from a user's own file or module: `path.py:name`, `module:name`. Mistakes in it are named with their line.

A file is run once for each content it has had: whoever asks for a name in it gets the same object, so that two settings
of a method are settings of one and the same class.
"""

import hashlib
import importlib
import importlib.util
import sys
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from fedcso.core.errors import FedcsoError, UnknownName

HERE = Path()


def load(field: str, name: str, root: Path = HERE) -> Any:
    """Return what `path.py:name` or `module:name`, given for `field`, stands for; paths begin at `root`."""
    where, _, attribute = name.rpartition(":")
    module = _load_file(field, root / where) if where.endswith(".py") else _load_module(field, where)
    if not hasattr(module, attribute):
        names = [key for key in vars(module) if not key.startswith("_")]
        raise UnknownName(f"name in {where}", attribute, names)
    return getattr(module, attribute)


def rooted(name: str, root: Path) -> str:
    """Return the name of the same object for who does not know where paths begin."""
    where, _, attribute = name.rpartition(":")
    return f"{root / where}:{attribute}" if where.endswith(".py") else name


class Source(NamedTuple):
    """A user's file and what is in it."""

    path: Path
    content: bytes

    @property
    def fingerprint(self) -> str:
        """Return what tells this content from any other."""
        return hashlib.sha256(self.content).hexdigest()


def source(field: str, name: str, root: Path = HERE) -> Source:
    """Return the file behind `path.py:name` or `module:name`."""
    where = name.rpartition(":")[0]
    path = root / where if where.endswith(".py") else Path(str(_load_module(field, where).__file__))
    return Source(path, _read(field, path))


def line_in(path: Path, error: BaseException) -> str:
    """Return where in the user's file an error happened, in words."""
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
        return _executed(path.resolve(), content)
    except Exception as error:
        line = line_in(path, error)
        raise FedcsoError(f"{field}: {path}{line} raised {type(error).__name__}: {error}") from error


def _read(field: str, path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise FedcsoError(f"{field}: there is no file {path}") from None
    except OSError as error:
        raise FedcsoError(f"{field}: {path} can't be read: {error.strerror}") from error


@cache
def _executed(path: Path, content: bytes) -> ModuleType:
    """Run a file with this content, and no other that a cache of Python's may hold."""
    # Not the bare stem: an own statistics.py must not hide Python's, nor two files of the same name each other.
    name = f"fedcso_own_{path.stem}_{hashlib.sha256(str(path).encode() + content).hexdigest()[:8]}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None  # a .py file always has one
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    exec(compile(content, path, "exec"), vars(module))
    return module
