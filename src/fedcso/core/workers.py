"""A thread pool whose threads each use ONE torch thread.

For many tasks the size of one step of a small network, this is faster than letting torch split every operator among the
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
"""glibc's M_TRIM_THRESHOLD and M_MMAP_THRESHOLD: sizes in bytes above which memory is returned to, or taken from, the
system."""
_THRESHOLD = 1 << 30


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0))


def keep_freed_memory() -> None:
    """Make the C library keep freed memory instead of returning it to the system.

    A step of a small network allocates and frees megabytes many times; otherwise it spends about a tenth of its time
    on fresh pages. This has an effect with glibc only.
    """
    if sys.platform == "linux":
        mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
        if mallopt is not None:
            for threshold in (_TRIM, _MMAP):
                mallopt(threshold, _THRESHOLD)


def pool(workers: int | None = None) -> ThreadPoolExecutor:
    """Return a thread pool with that many threads, by default one for each core."""
    keep_freed_memory()
    return ThreadPoolExecutor(workers or cores(), initializer=torch.set_num_threads, initargs=(1,))


@contextmanager
def one_thread() -> Iterator[None]:
    """Use one torch thread inside the `with` block: small operators gain nothing from a second one."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
