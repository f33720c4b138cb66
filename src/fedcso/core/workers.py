"""A pool of threads that each compute with ONE of torch's threads.

For many pieces of work of the size of a small network's step this beats letting torch split every operator among the
cores.
"""

import ctypes
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import torch

_TRIM, _MMAP = -1, -3
"""glibc's M_TRIM_THRESHOLD and M_MMAP_THRESHOLD: how much must be free, or asked for, before the system is involved."""
_AT_LEAST = 1 << 30


def cores() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0))


def keep_freed_memory() -> None:
    """Let the C library keep what tensors free instead of giving it back to the system and asking again at once.

    A step of a small network allocates and frees megabytes many times over; without this about a tenth of its time
    goes into fresh pages. Only glibc has the switch; elsewhere nothing happens.
    """
    if sys.platform == "linux":
        tune = getattr(ctypes.CDLL(None), "mallopt", None)
        if tune is not None:
            for threshold in (_TRIM, _MMAP):
                tune(threshold, _AT_LEAST)


def pool(workers: int | None = None) -> ThreadPoolExecutor:
    """As many threads as there are cores, or as asked for."""
    keep_freed_memory()
    return ThreadPoolExecutor(workers or cores(), initializer=torch.set_num_threads, initargs=(1,))


@contextmanager
def one_thread() -> Iterator[None]:
    """Small operators gain nothing from a second thread, and on a busy machine wait for it."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
