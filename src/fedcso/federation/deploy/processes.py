"""Background processes that outlive the command that started them, recorded in a file so that they can be stopped."""

import json
import os
import signal
import socket
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from fedcso.core import atomic
from fedcso.core.errors import FedcsoError

GRACE_SECONDS = 20.0
"""How long a process may take to end after SIGTERM."""


class Processes:
    """The processes of a folder by name; a file in the folder has their ids and start times."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.file = folder / "processes.json"

    def start(self, name: str, command: Sequence[str], environment: Mapping[str, str]) -> int:
        """Start a process in a new session, with its output in a log file, and return its id."""
        self.folder.mkdir(parents=True, exist_ok=True)
        log = str(self.folder / f"{name}.log")
        pid = os.posix_spawn(
            command[0],
            list(command),
            dict(os.environ) | dict(environment),
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644),
                (os.POSIX_SPAWN_DUP2, 1, 2),
            ],
            setsid=True,
        )
        self._write(self.recorded() | {name: {"pid": pid, "began": _start_time(pid)}})
        return pid

    def recorded(self) -> dict[str, Any]:
        """Return all processes that were started and have not been stopped."""
        return dict(json.loads(self.file.read_text())) if self.file.is_file() else {}

    def alive(self) -> dict[str, int]:
        """Return the ids of those that still run; the start time excludes later processes with the same id."""
        return {
            name: process["pid"]
            for name, process in self.recorded().items()
            if _start_time(process["pid"]) == process["began"]
        }

    def stop(self, names: Sequence[str] | None = None) -> list[str]:
        """Stop processes, by SIGKILL if they don't end in time, and return the names of those that were running."""
        chosen = {name: pid for name, pid in self.alive().items() if names is None or name in names}
        for pid in chosen.values():
            os.kill(pid, signal.SIGTERM)
        deadline = time.monotonic() + GRACE_SECONDS
        while set(chosen) & set(self.alive()) and time.monotonic() < deadline:
            _reap(chosen.values())
            time.sleep(0.1)
        for pid in chosen.values():
            with suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)  # the process, if it is still there, and its children
        if chosen:
            self._write({name: process for name, process in self.recorded().items() if name not in chosen})
        return list(chosen)

    def log_tail(self, name: str) -> str:
        """Return the last lines of a process's log."""
        path = self.folder / f"{name}.log"
        lines = path.read_text(errors="replace").splitlines() if path.is_file() else []
        return " | ".join(line.strip() for line in lines[-6:] if line.strip())

    def require_alive(self, name: str) -> None:
        """Raise `FedcsoError` if a process has ended."""
        _reap([process["pid"] for process in self.recorded().values()])
        if name not in self.alive():
            raise FedcsoError(f"{name} has ended: {self.log_tail(name)} (full log: {self.folder / name}.log)")

    def _write(self, processes: dict[str, Any]) -> None:
        atomic.write(self.file, json.dumps(processes, indent=1))


def _start_time(pid: int) -> str | None:
    """Return when a process started, in clock ticks; None if it does not exist or is a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] == "Z" else fields[19]


def _reap(pids: Any) -> None:
    """Reap ended processes that are children of this one."""
    for pid in pids:
        try:
            os.waitpid(pid, os.WNOHANG)
        except ChildProcessError:
            continue


def free_port() -> int:
    """Return a port that is free on loopback at the moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
