"""Processes that outlive the command that started them, written down so that just those can be stopped later."""

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


class Processes:
    """The processes of a folder, by name: their numbers and when they began, in a file there."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.file = folder / "processes.json"

    def start(self, name: str, command: Sequence[str], environment: Mapping[str, str]) -> int:
        """Start one in a session of its own, with a log file; what it says goes there."""
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
        self._write(self.recorded() | {name: {"pid": pid, "began": _began(pid)}})
        return pid

    def recorded(self) -> dict[str, Any]:
        """All that were started and not stopped since."""
        return dict(json.loads(self.file.read_text())) if self.file.is_file() else {}

    def alive(self) -> dict[str, int]:
        """Those that still run: another process that got the same number later is none of them."""
        return {
            name: process["pid"]
            for name, process in self.recorded().items()
            if _began(process["pid"]) == process["began"]
        }

    def stop(self, names: Sequence[str] | None = None) -> list[str]:
        """Ask them to end, and make them if they don't; returns who was stopped."""
        chosen = {name: pid for name, pid in self.alive().items() if names is None or name in names}
        for pid in chosen.values():
            os.kill(pid, signal.SIGTERM)
        deadline = time.monotonic() + GRACE_SECONDS
        while set(chosen) & set(self.alive()) and time.monotonic() < deadline:
            _reap(chosen.values())
            time.sleep(0.1)
        for pid in chosen.values():
            with suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)  # whoever is left, itself or what it had started
        if chosen:
            self._write({name: process for name, process in self.recorded().items() if name not in chosen})
        return list(chosen)

    def last_words(self, name: str) -> str:
        """The end of what a process said."""
        path = self.folder / f"{name}.log"
        lines = path.read_text(errors="replace").splitlines() if path.is_file() else []
        return " | ".join(line.strip() for line in lines[-6:] if line.strip())

    def require_alive(self, name: str) -> None:
        """Refuse to go on without one."""
        _reap([process["pid"] for process in self.recorded().values()])
        if name not in self.alive():
            raise FedcsoError(f"{name} has ended: {self.last_words(name)} (all of it: {self.folder / name}.log)")

    def _write(self, processes: dict[str, Any]) -> None:
        atomic.write(self.file, json.dumps(processes, indent=1))


def _began(pid: int) -> str | None:
    """When a process began, in the kernel's ticks; None if there is none, or it has ended and is not yet buried."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] == "Z" else fields[19]


def _reap(pids: Any) -> None:
    """Bury ended processes that this very process had started."""
    for pid in pids:
        try:
            os.waitpid(pid, os.WNOHANG)
        except ChildProcessError:
            continue


def free_port() -> int:
    """A port on loopback that no one uses just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
