"""Worker threads use one torch thread each, and leave the setting of other threads unchanged."""

import platform
import resource
import threading

import pytest
import torch

from fedcso.core.workers import cores, pool


@pytest.fixture
def two_threads():
    """Let torch use two threads outside the pool."""
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def test_every_worker_computes_with_one_thread_and_everyone_else_as_before(two_threads):
    everyone_is_here = threading.Barrier(3)

    def look(_):
        everyone_is_here.wait(timeout=10)
        return threading.get_ident(), torch.get_num_threads()

    with pool(3) as workers:
        seen = dict(workers.map(look, range(3)))
        assert torch.get_num_threads() == 2
    assert len(seen) == 3
    assert set(seen.values()) == {1}
    assert torch.get_num_threads() == 2


def test_there_are_as_many_workers_as_cores():
    with pool() as workers:
        assert workers._max_workers == cores() >= 1


def test_what_a_worker_raises_is_raised_here():
    with pool(1) as workers, pytest.raises(ZeroDivisionError):
        list(workers.map(lambda x: 1 / x, [0]))


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc can be told to keep freed memory")
def test_memory_that_was_freed_is_used_again_without_asking_the_system():
    def fresh_pages(times):
        before = resource.getrusage(resource.RUSAGE_THREAD).ru_minflt
        for _ in range(times):
            torch.ones(9_000_000)
        return resource.getrusage(resource.RUSAGE_THREAD).ru_minflt - before

    with pool(1) as workers:
        _, later = workers.map(fresh_pages, [20, 20])
    assert later < 100, "36 MB are nine thousand pages"
