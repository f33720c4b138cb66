"""Real processes that talk by gloo over the loopback interface, without the seconds that starting them takes.

`play(2, function, ...)` calls a function of some test module in two processes at once, as `torchrun` would; an
assertion that fails in any of them fails the test.
"""

import os
import socket
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from tests.forks import SERVER


def play(processes: int, function: Callable[..., None], *arguments: Any, place: Path) -> list[int]:
    """The exit codes of all ranks, after they have run to their end; what they say goes to files in `place`."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    every = [
        SERVER.Process(target=_rank, args=(rank, processes, port, place / f"rank{rank}.txt", function, arguments))
        for rank in range(processes)
    ]
    for process in every:
        process.start()
    for process in every:
        process.join(timeout=120)
    return [process.exitcode if process.exitcode is not None else -1 for process in every]


def said(place: Path) -> str:
    """What all ranks said."""
    return "\n".join(f"{path.name}: {path.read_text()}" for path in sorted(place.glob("rank*.txt")))


def _rank(
    rank: int, size: int, port: int, output: Path, function: Callable[..., None], arguments: tuple[Any, ...]
) -> None:
    os.environ |= {"RANK": f"{rank}", "LOCAL_RANK": f"{rank}", "WORLD_SIZE": f"{size}", "LOCAL_WORLD_SIZE": f"{size}"}
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": f"{port}", "GLOO_SOCKET_IFNAME": "lo"}
    with output.open("w") as file:
        os.dup2(file.fileno(), sys.stdout.fileno())
        os.dup2(file.fileno(), sys.stderr.fileno())
    torch.set_num_threads(1)
    try:
        function(*arguments)
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)
