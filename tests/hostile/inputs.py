"""Give fedcso hostile files, each made from (seed, number): it works, or says in words what is wrong.

For every file: no other error than in words, no long time, no file outside of the run folders, and nothing that was
there is changed. The memory of all together is bounded, too.
"""

import hashlib
import os
import random
import resource
import shutil
import signal
import time
import traceback
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import yaml

from fedcso.core.errors import FedcsoError
from fedcso.reports import figures, outputs
from tests.command_line import FINE, call
from tests.hostile import archives, configurations, tables

SECONDS = 30.0
"""The most processor time that a file may take; after a hundred times as long it counts as hanging."""
MEGABYTES = 800
"""The most memory by which all files together may make the process grow."""
ROOM = 4 * 2**30
"""Bytes that the process may take beyond its size at the start: then allocations fail, before the machine has none."""
LONGEST = 20_000
"""The most characters of a message."""


class Outcome(NamedTuple):
    """What became of the files of one kind."""

    number: int
    refused: int
    longest: float
    """The longest processor time, in seconds."""


class Harm(AssertionError):
    """What a file did and no file may do."""


def attack(seed, number, folder, progress=lambda done: None):
    """Return the outcomes by kind, by how many megabytes the process grew, and all harm that was done."""
    folder, before = Path(folder).resolve(), (figures.render, outputs.as_onnx, os.getcwd())
    limits = resource.getrlimit(resource.RLIMIT_AS)
    figures.render, outputs.as_onnx = (lambda figure, kind: b""), (lambda network: b"")
    os.chdir(folder)
    try:
        kept, good = _kept(folder)
        kinds = [configurations.OfARun(), configurations.OfAFederation(), configurations.OfASite(), tables.OfASite()]
        kinds += [archives.Downloaded(), archives.OfARun(good)]
        tried, refused, longest, harm = Counter(), Counter(), Counter(), []
        began = _memory()
        resource.setrlimit(resource.RLIMIT_AS, (_size() + ROOM, limits[1]))
        for n in range(number):
            rng = random.Random(f"{seed} {n}")
            kind = rng.choice(kinds)
            place = folder / "place"
            place.mkdir()
            kind.make(rng, place)
            started = time.process_time()
            try:
                refused[kind.title] += _faced(kind, place)
            except Harm as done:
                harm.append(f"file {n} of seed {seed} ({kind.title}) {done}")
            longest[kind.title] = max(longest[kind.title], time.process_time() - started)
            tried[kind.title] += 1
            shutil.rmtree(place)
            for path in set(folder.iterdir()) - {folder / "kept"}:
                harm.append(f"file {n} of seed {seed} ({kind.title}) leaves {path.name} behind")
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            progress(n + 1)
        if _digest(folder / "kept") != kept:
            harm.append("a file that was there has changed")
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)
        figures.render, outputs.as_onnx, _ = before
        os.chdir(before[2])
    return {title: Outcome(tried[title], refused[title], longest[title]) for title in tried}, _memory() - began, harm


def _faced(kind, place):
    """Return whether a file was refused in words; raise `Harm` if it broke anything."""

    def hangs(number, frame):
        raise TimeoutError("it hangs")

    handler = signal.signal(signal.SIGALRM, hangs)
    signal.alarm(int(100 * SECONDS))
    try:
        kind.face(place)
    except FedcsoError as refusal:
        if not 0 < len(str(refusal)) < LONGEST:
            raise Harm(f"is refused with {len(str(refusal))} characters") from refusal
        return True
    except BaseException as error:
        raise Harm(f"raises {type(error).__name__} {_where(error)}: {str(error)[:300]}") from error
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, handler)
    return False


def _where(error):
    """Our own innermost line."""
    ours = [frame for frame in traceback.extract_tb(error.__traceback__) if "/fedcso/" in frame.filename]
    return f"at {ours[-1].filename.rpartition('/fedcso/')[2]}:{ours[-1].lineno}" if ours else "elsewhere"


def _kept(folder):
    """A run folder that must stay as it is: its digest, and one of its checkpoints."""
    (folder / "kept").mkdir()
    small = configurations.RUN | {"rounds": 2, "checkpoint_rounds": 1, "out": str(folder / "kept" / "runs")}
    (folder / "kept" / "config.yaml").write_text(yaml.safe_dump(small))
    outcome = call("run", "--config", folder / "kept" / "config.yaml")
    assert outcome.code == FINE, outcome.err
    newest = max((folder / "kept").rglob("*/checkpoints/*/*/*.safetensors"))
    return _digest(folder / "kept"), newest.read_bytes()


def _digest(folder):
    found = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        found.update(str(path).encode() + (path.read_bytes() if path.is_file() else b""))
    return found.hexdigest()


def _size():
    """The bytes of addresses that the process has."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def _memory():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
