"""Objects from a user's own file or module: `path.py:name`, `module:name`. Mistakes in it are named with their line."""

import importlib
import importlib.util
import sys
from pathlib import Path
from typing import Any

from fedcso.core.errors import FedcsoError, UnknownName


def load(field: str, name: str) -> Any:
    """What `path.py:name` or `module:name`, given for `field`, stands for."""
    where, _, attribute = name.rpartition(":")
    module = _load_file(field, Path(where)) if where.endswith(".py") else _load_module(field, where)
    if not hasattr(module, attribute):
        names = [key for key in vars(module) if not key.startswith("_")]
        raise UnknownName(f"name in {where}", attribute, names)
    return getattr(module, attribute)


def _load_module(field: str, name: str) -> Any:
    sys.path.insert(0, "")
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise FedcsoError(f"{field}: module {name!r} can't be imported: {error}") from error
    finally:
        sys.path.remove("")


def _load_file(field: str, path: Path) -> Any:
    if not path.is_file():
        raise FedcsoError(f"{field}: there is no file {path}")
    name = f"fedcso_own_{path.stem}"  # not the bare stem: an own statistics.py must not hide Python's
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None  # a .py file always has a spec and a loader
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        line = line_in(path, error)
        raise FedcsoError(f"{field}: {path}{line} raised {type(error).__name__}: {error}") from error
    return module


def line_in(path: Path, error: BaseException) -> str:
    """Where in the user's file it happened."""
    trace, line = error.__traceback__, ""
    while trace:
        if Path(trace.tb_frame.f_code.co_filename).resolve() == path.resolve():
            line = f", line {trace.tb_lineno},"
        trace = trace.tb_next
    return line
