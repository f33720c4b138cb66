"""Work in several processes side by side, each on a core of its own.

The processes are forked, so they have all data without a copy, and leave their results on disk, where their parent
finds them. They report progress to the parent, which passes a request to stop on to them. A process that dies, or that
meets an error, leaves its work undone; the parent then does it itself and meets the same error.
"""

import os
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from types import TracebackType
from typing import Self

import torch

from fedcso.core.errors import FedcsoError
from fedcso.runs.progress import Display

LOOK = 0.5
"""Seconds between two looks at whether a stop was requested."""

Work = Callable[[int, Display], object]
"""Does a piece of work, by its number, and shows its progress."""


@dataclass
class Forwarded:
    """A display in a process, which shows everything on the parent's."""

    connection: Connection

    def update(self, name: str, done: int, total: int, note: str) -> None:
        """Send what is to be shown; this fails if the parent has died, which ends the process."""
        self.connection.send((name, done, total, note))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass


def spread(number: int, work: Work, processes: int, requested: threading.Event) -> Callable[[Display], None]:
    """Fork processes for so many pieces of work; return a function that waits for them and shows their progress.

    Fork before a display is open, because a display has threads, which a fork does not copy.
    """
    context = get_context("fork")
    waiting = list(range(number))
    running: dict[Connection, BaseProcess] = {}
    for core in sorted(os.sched_getaffinity(0))[: min(processes, number)]:
        ours, theirs = context.Pipe()
        others = [*running, ours]
        process = context.Process(target=_serve, args=(core, work, theirs, requested, others), daemon=True)
        process.start()
        theirs.close()
        running[ours] = process

    def carry_out(display: Display) -> None:
        try:
            for connection in running:
                _hand_out(waiting, connection)
            told = False
            while running:
                if requested.is_set() and not told:
                    told = True
                    for process in running.values():
                        process.terminate()  # a request to stop after the round, see `_serve`
                ready = wait(list(running), LOOK)
                for connection in [one for one in running if one in ready]:
                    if not _hear(connection, waiting, display):
                        running.pop(connection).join()
        finally:
            for process in running.values():
                process.kill()

    return carry_out


def _hear(connection: Connection, waiting: list[int], display: Display) -> bool:
    """Receive one message; return False if the process has ended."""
    try:
        message = connection.recv()
    except (EOFError, OSError):
        return False
    if message is None:
        _hand_out(waiting, connection)
    else:
        display.update(*message)
    return True


def _hand_out(waiting: list[int], connection: Connection) -> None:
    """Give a process its next piece of work, or tell it that there is none."""
    with suppress(OSError):  # it has died, which the next look finds out
        connection.send(waiting.pop(0) if waiting else None)


def _serve(
    core: int, work: Work, connection: Connection, requested: threading.Event, parents_ends: list[Connection]
) -> None:
    """Do one piece of work after the other, until there are no more or a stop is requested."""
    for one in parents_ends:
        one.close()  # or a process would not notice that the parent has died
    os.sched_setaffinity(0, {core})
    torch.set_num_threads(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes of a terminal; the parent tells us
    signal.signal(signal.SIGTERM, lambda *_: requested.set())
    while not requested.is_set() and (number := connection.recv()) is not None:
        with suppress(FedcsoError):  # the parent will meet it too
            work(number, Forwarded(connection))
        connection.send(None)
