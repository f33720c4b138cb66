"""The processes that `torchrun` starts, and their communication (gloo, or NCCL on GPUs).

Rank 0 is the leader: it decides, displays progress and writes files. The followers receive commands from it and do
their share of the work. Without `torchrun` there is a single process, the leader.
"""

import atexit
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

import torch
import torch.distributed as dist

from fedcso.core.errors import FedcsoError
from fedcso.engines.torchrun import LEADER, rank, size


class RankLost(FedcsoError):
    """Another process of the job ended early."""

    exit_code = 1


# ------------------------------------------------------------------------------- collective operations


def all_reduce(numbers: torch.Tensor) -> None:
    """Replace the numbers by their sum over all ranks."""
    with _together():
        dist.all_reduce(numbers)


def gather_rows(numbers: Sequence[float]) -> list[list[float]]:
    """Return the rows of numbers of all ranks."""
    own = torch.tensor(numbers, dtype=torch.float64)
    rows = [torch.empty_like(own) for _ in range(size())]
    with _together():
        dist.all_gather(rows, own)
    return [row.tolist() for row in rows]


def all_gather(content: bytes) -> list[bytes]:
    """Return the messages of all ranks, on every rank."""
    return [broadcast(content, source) for source in range(size())]


def broadcast(content: bytes, source: int = LEADER) -> bytes:
    """Return the content that `source` passes; what other ranks pass is ignored."""
    length = torch.tensor([len(content)])
    with _together():
        dist.broadcast(length, source)
        message = _as_tensor(content) if rank() == source else torch.empty(int(length), dtype=torch.uint8)
        if int(length):
            dist.broadcast(message, source)
    return message.numpy().tobytes()


# ------------------------------------------------------------------------------------------- point to point


def send(content: bytes, target: int) -> None:
    """Send a message to another rank, which must call `receive`."""
    with _together():
        dist.send(torch.tensor([len(content)]), target)
        if content:
            dist.send(_as_tensor(content), target)


def receive(source: int) -> bytes:
    """Wait for a message from another rank and return it."""
    length = torch.empty(1, dtype=torch.int64)
    with _together():
        dist.recv(length, source)
        message = torch.empty(int(length), dtype=torch.uint8)
        if int(length):
            dist.recv(message, source)
    return message.numpy().tobytes()


# ------------------------------------------------------------------------------------ commands to the followers


def send_command(what: str) -> None:
    """Send a command from the leader to all followers, if there are any."""
    send_content(what.encode())


def receive_command() -> str:
    """Wait for the leader's next command; an empty one means that there are no more."""
    return receive_content().decode()


def send_content(content: bytes) -> None:
    """Send what belongs to a command from the leader to all followers, if there are any."""
    if size() > 1:
        broadcast(content)


def receive_content() -> bytes:
    """Wait for what the leader sends."""
    return broadcast(b"")


def release_followers() -> None:
    """Tell the followers that there are no more commands; ignore those that have ended already."""
    with suppress(RankLost):
        send_command("")


def is_connected() -> bool:
    """Return whether this process has communicated with the others."""
    return dist.is_initialized()


@contextmanager
def _together() -> Iterator[None]:
    """Connect to the other processes if necessary; turn communication errors into `RankLost`."""
    try:
        if not dist.is_initialized():
            dist.init_process_group("cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo")
            atexit.register(_leave)
        yield
    except (RuntimeError, ValueError) as error:  # torch raises ValueError if it can't find the other processes
        reason = str(error).rpartition("] ")[2].partition(". ")[0]  # without gloo's source location
        raise RankLost(f"rank {rank()} of {size()} lost the others: a rank was killed or failed ({reason})") from None


def _leave() -> None:
    with suppress(RuntimeError):  # the others may have ended first
        dist.destroy_process_group()


def _as_tensor(content: bytes) -> torch.Tensor:
    return torch.frombuffer(bytearray(content), dtype=torch.uint8) if content else torch.empty(0, dtype=torch.uint8)
