"""Commands in processes of their own, which start at once."""

import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from tests.forks import SERVER


def start(place: Path, *arguments: object, dies_at: int | None = None) -> BaseProcess:
    """Begin a command in a folder; what it says goes to `said.txt` there.

    Figures and exported networks, which take longest by far, are left empty. With `dies_at` the process kills itself,
    by SIGKILL, before the file operation of that number; of a file that it has just written, half is there.
    """
    process = SERVER.Process(target=_command, args=(place, [str(a) for a in arguments], dies_at))
    process.start()
    return process


def end(process: BaseProcess) -> int:
    """Wait; the exit code, or minus the number of the signal that ended it."""
    process.join()
    assert process.exitcode is not None
    return process.exitcode


def _command(place: Path, arguments: list[str], dies_at: int | None) -> None:
    from fedcso.cli.main import main
    from fedcso.reports import figures, outputs

    os.chdir(place)
    with open("said.txt", "a") as said:
        os.dup2(said.fileno(), sys.stdout.fileno())
        os.dup2(said.fileno(), sys.stderr.fileno())
    figures.render = lambda figure, kind: b""
    outputs.as_onnx = lambda network: b""
    if dies_at is not None:
        _die_before_file_operation(dies_at)
    sys.exit(main(arguments))


def _die_before_file_operation(number: int) -> None:
    """Everything by which a file becomes whole, gets its name or goes away is counted."""
    count, fsync = 0, os.fsync

    def counted(operation: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(*arguments: Any, **options: Any) -> Any:
            nonlocal count
            count += 1
            if count == number:
                if operation is fsync:
                    with suppress(OSError):  # not of a folder
                        os.ftruncate(arguments[0], os.fstat(arguments[0]).st_size // 2)
                os.kill(os.getpid(), signal.SIGKILL)
            return operation(*arguments, **options)

        return wrapper

    for name in ("fsync", "replace", "rename", "unlink"):
        setattr(os, name, counted(getattr(os, name)))
