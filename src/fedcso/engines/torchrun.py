"""What `torchrun` tells the processes that it starts. A process that it did not start is alone, and the leader."""

import os

LEADER = 0


def started() -> bool:
    """Return whether this process was started by `torchrun`."""
    return "RANK" in os.environ and "WORLD_SIZE" in os.environ


def rank() -> int:
    """Return the rank of this process, from 0."""
    return int(os.environ["RANK"]) if started() else LEADER


def size() -> int:
    """Return the number of processes."""
    return int(os.environ["WORLD_SIZE"]) if started() else 1


def on_this_host() -> int:
    """Return the number of processes on this machine."""
    return int(os.environ.get("LOCAL_WORLD_SIZE", "1")) if started() else 1


def follows() -> bool:
    """Return whether this process is a follower."""
    return rank() != LEADER


def own_device(device: str) -> str:
    """Return this rank's device, where there are several of a kind."""
    return f"{device}:{os.environ.get('LOCAL_RANK', '0')}" if device == "cuda" else device
