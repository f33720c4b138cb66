"""The processes that `torchrun` starts: which of them this is, and how they talk (gloo, or NCCL on GPUs).

Rank 0 leads: it decides, shows and writes. The others follow: they hear what is to be done next, and do their share.
Without `torchrun` there is one process, which leads nobody.
"""

import atexit
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

import torch
import torch.distributed as dist

from fedcso.core.errors import FedcsoError

LEADER = 0


class RankLost(FedcsoError):
    """Another process of the job has ended before its time."""


def started() -> bool:
    """True under `torchrun`."""
    return "RANK" in os.environ and "WORLD_SIZE" in os.environ


def rank() -> int:
    """Which process this is, from 0."""
    return int(os.environ["RANK"]) if started() else LEADER


def size() -> int:
    """How many there are."""
    return int(os.environ["WORLD_SIZE"]) if started() else 1


def on_this_host() -> int:
    """How many of them share this machine."""
    return int(os.environ.get("LOCAL_WORLD_SIZE", "1")) if started() else 1


def follows() -> bool:
    """True for all ranks but the first."""
    return rank() != LEADER


def own_device(device: str) -> str:
    """The device that belongs to this rank, where there are several of a kind."""
    return f"{device}:{os.environ.get('LOCAL_RANK', '0')}" if device == "cuda" else device


# ------------------------------------------------------------------------------- what is done by all together


def add_up(numbers: torch.Tensor) -> None:
    """Replace the numbers by their sum over all ranks."""
    with _together():
        dist.all_reduce(numbers)


def table(numbers: Sequence[float]) -> list[list[float]]:
    """A row of numbers from every rank."""
    own = torch.tensor(numbers, dtype=torch.float64)
    rows = [torch.empty_like(own) for _ in range(size())]
    with _together():
        dist.all_gather(rows, own)
    return [row.tolist() for row in rows]


def collect(content: bytes) -> list[bytes]:
    """A message from every rank to every rank."""
    return [spread(content, source) for source in range(size())]


def spread(content: bytes, source: int = LEADER) -> bytes:
    """What `source` has to say, for all; what the others pass is left out."""
    length = torch.tensor([len(content)])
    with _together():
        dist.broadcast(length, source)
        message = _as_tensor(content) if rank() == source else torch.empty(int(length), dtype=torch.uint8)
        if int(length):
            dist.broadcast(message, source)
    return message.numpy().tobytes()


# ------------------------------------------------------------------------------------------- from one to one


def send(content: bytes, target: int) -> None:
    """A message to one other rank, which must `receive` it."""
    with _together():
        dist.send(torch.tensor([len(content)]), target)
        if content:
            dist.send(_as_tensor(content), target)


def receive(source: int) -> bytes:
    """What another rank sends."""
    length = torch.empty(1, dtype=torch.int64)
    with _together():
        dist.recv(length, source)
        message = torch.empty(int(length), dtype=torch.uint8)
        if int(length):
            dist.recv(message, source)
    return message.numpy().tobytes()


# ------------------------------------------------------------------------------------ what the followers do next


def tell(what: str) -> None:
    """The leader says what is to be done next; nothing happens where nobody listens."""
    if size() > 1:
        spread(what.encode())


def hear() -> str:
    """A follower waits for what is to be done next; empty if that was all."""
    return spread(b"").decode()


def dismiss() -> None:
    """The leader has nothing more to do; those who have gone already need not be told."""
    with suppress(RankLost):
        tell("")


def in_touch() -> bool:
    """True once this process has talked to the others."""
    return dist.is_initialized()


@contextmanager
def _together() -> Iterator[None]:
    """Whatever breaks while processes talk means that one of them is not there any more."""
    try:
        if not dist.is_initialized():
            dist.init_process_group("cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo")
            atexit.register(_leave)
        yield
    except RuntimeError as error:
        reason = str(error).rpartition("] ")[2].partition(". ")[0]  # without the place in gloo's source
        raise RankLost(f"rank {rank()} of {size()} has lost the others: one was killed or failed ({reason})") from None


def _leave() -> None:
    with suppress(RuntimeError):  # the others may have gone first
        dist.destroy_process_group()


def _as_tensor(content: bytes) -> torch.Tensor:
    return torch.frombuffer(bytearray(content), dtype=torch.uint8) if content else torch.empty(0, dtype=torch.uint8)
