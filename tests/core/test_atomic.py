"""A file is either complete or absent, whatever happens to the process that writes it."""

import os
import random
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest

from fedcso.core import atomic

WRITER = """
import itertools, sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

spec = spec_from_file_location("atomic", sys.argv[1])
atomic = module_from_spec(spec)
spec.loader.exec_module(atomic)
for n in itertools.count():
    letter = b"abcdefghijklmnopqrstuvwxyz"[n % 26 : n % 26 + 1]
    atomic.write(Path(sys.argv[2]), letter * (n * 7919 % 300_000 + 1) + b"END")
"""
"""A program that overwrites the same file again and again: one letter many times, and an end mark."""


def is_whole(content):
    return content.endswith(b"END") and len(set(content[:-3])) == 1


def test_the_check_of_the_next_test_knows_a_partial_file():
    assert is_whole(b"aaaEND")
    assert not is_whole(b"aaa")
    assert not is_whole(b"aabEND")


@contextmanager
def writer_of(target):
    """Run a process that writes until it is killed at the end of the block; it has written several times before."""
    target.unlink(missing_ok=True)
    process = subprocess.Popen([sys.executable, "-S", "-c", WRITER, atomic.__file__, str(target)])
    try:
        while not target.exists():
            assert process.poll() is None
            time.sleep(0.001)
        first = target.read_bytes()
        while target.read_bytes() == first:  # on a busy machine this takes a while
            time.sleep(0.001)
        yield
    finally:
        process.kill()
        process.wait()


def test_a_killed_writer_never_leaves_part_of_a_file(tmp_path):
    target = tmp_path / "file"
    rng = random.Random(0)
    for _ in range(12):
        with writer_of(target):
            time.sleep(rng.uniform(0, 0.1))
        assert is_whole(target.read_bytes())


def test_a_reader_never_sees_part_of_a_file(tmp_path):
    target = tmp_path / "file"
    seen = set()
    with writer_of(target):
        while len(seen) < 50:
            seen.add(target.read_bytes())
    assert all(map(is_whole, seen))


@pytest.mark.parametrize("content", [b"", b"\x00\xff", "σ₂ ± 1", b"a" * 1_000_000])
def test_what_is_written_is_there(tmp_path, content):
    atomic.write(tmp_path / "file", content)
    assert (tmp_path / "file").read_bytes() == (content.encode() if isinstance(content, str) else content)
    assert os.listdir(tmp_path) == ["file"]


def test_others_may_read_the_file(tmp_path):
    atomic.write(tmp_path / "file", "text")
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("step", ["fsync", "chmod", "replace"])
def test_a_write_that_fails_leaves_the_old_file_and_no_other(tmp_path, monkeypatch, step):
    atomic.write(tmp_path / "file", "old")

    def full(*_):
        raise OSError("no space left on device")

    monkeypatch.setattr(os, step, full)
    with pytest.raises(OSError, match="no space"):
        atomic.write(tmp_path / "file", "new")
    assert (tmp_path / "file").read_text() == "old"
    assert os.listdir(tmp_path) == ["file"]


def test_an_interruption_leaves_no_temporary_file(tmp_path, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        atomic.write(tmp_path / "file", "new")
    assert os.listdir(tmp_path) == []
