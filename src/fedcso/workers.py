"""A pool of threads that each compute with ONE of torch's threads.

For many pieces of work of the size of a small network's step this beats letting torch split every operator among the
cores.
"""

import os
from concurrent.futures import ThreadPoolExecutor

import torch


def cores() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0))


def pool(workers: int | None = None) -> ThreadPoolExecutor:
    """As many threads as there are cores, or as asked for."""
    return ThreadPoolExecutor(workers or cores(), initializer=torch.set_num_threads, initargs=(1,))
