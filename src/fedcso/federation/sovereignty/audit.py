"""The record of everything that a site has sent: a line of JSON for each message, written before the message leaves.

Each line has the SHA-256 of the line before, so no line can be changed or removed without a trace. `sent.head` has the
number of lines and the hash of the last one, which shows whether lines are missing at the end. A site whose record
does not fit its head sends nothing more. Whoever can write to the site's folder can forge both files together; a head
that is written down elsewhere shows this, too.
"""

import fcntl
import hashlib
import json
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fedcso.core import atomic
from fedcso.federation.sovereignty.policy import Refused
from fedcso.federation.sovereignty.update import Update, epsilon

FILE = "sent.jsonl"
HEAD = "sent.head"
BEGINNING = "0" * 64
"""What the first line has as the hash of the line before."""


@dataclass(frozen=True)
class Head:
    """The number of lines of a record, and the hash of the last one."""

    lines: int = 0
    hash: str = BEGINNING


def record(folder: Path, message: dict[str, Any], update: Update) -> None:
    """Append a line for a message; raise `Refused` if the record does not fit, or if updates would reveal too much.

    Args:
        folder: the site's folder
        message: what the line says; `updates` lists the protected updates in the message
        update: how the site protects them, and how much they may reveal in all
    """
    folder.mkdir(parents=True, exist_ok=True)
    with _locked(folder):
        lines = _fitting_lines(folder)
        spent = _spent(lines) + update.cost(len(message.get("updates", [])))
        _require_affordable(spent, update)
        line = json.dumps(
            {"line": len(lines) + 1, "time": datetime.now(UTC).isoformat(timespec="milliseconds")}
            | message
            | {"spent": spent, "previous": _hash(lines[-1]) if lines else BEGINNING},
            ensure_ascii=False,
        ).encode()
        _append(folder / FILE, line)
        atomic.write(folder / HEAD, json.dumps({"lines": len(lines) + 1, "hash": _hash(line)}))


def _append(path: Path, line: bytes) -> None:
    """Append a line, on a new line even if a crash has cut off the last one."""
    with open(path, "ab+") as file:
        if file.tell():
            file.seek(-1, os.SEEK_END)
            line = line if file.read() == b"\n" else b"\n" + line
        file.write(line + b"\n")
        file.flush()
        os.fsync(file.fileno())


def require_budget(folder: Path, update: Update) -> None:
    """Raise `Refused` if one more update would reveal more than the policy allows."""
    if update.max_epsilon:
        _require_affordable(_spent(_fitting_lines(folder)) + update.cost(), update)


def _require_affordable(spent: float, update: Update) -> None:
    if update.max_epsilon and epsilon(spent, update.delta) > update.max_epsilon:
        raise Refused(f"with this update ε would be {epsilon(spent, update.delta):.3g}, above max_epsilon")


def _fitting_lines(folder: Path) -> list[bytes]:
    """Return the lines of a record; raise `Refused` if they do not end as the head says."""
    lines, head = read_lines(folder), read_head(folder)
    if head is None or not _ends_at(lines, head):
        raise Refused(f"the record {folder / FILE} was changed; see: fedcso flower audit {folder}")
    return lines


def _ends_at(lines: list[bytes], head: Head) -> bool:
    """Return whether a record ends at its head; it may have one more line if a crash came between the two."""
    before = len(lines) - head.lines
    return before in (0, 1) and (_hash(lines[head.lines - 1]) if head.lines else BEGINNING) == head.hash


def _spent(lines: list[bytes]) -> float:
    """Return μ² of all updates so far; a line that a crash has cut off sent nothing."""
    for line in reversed(lines):
        if (said := _parse(line)) is not None:
            return float(said.get("spent", math.inf))
    return 0.0


def read_lines(folder: Path) -> list[bytes]:
    """Return the lines of a site's record; a crash may have cut off the last one."""
    path = folder / FILE
    lines = path.read_bytes().split(b"\n") if path.is_file() else [b""]
    return lines if lines[-1] else lines[:-1]


def read_head(folder: Path) -> Head | None:
    """Return the head of a record; None if it can't be read."""
    try:
        said = json.loads((folder / HEAD).read_text())
        return Head(int(said["lines"]), str(said["hash"]))
    except FileNotFoundError:
        return Head()
    except (OSError, ValueError, LookupError, TypeError):
        return None


def faults(folder: Path, known: str = "") -> list[str]:
    """Return what is wrong with a record: changed and missing lines; `known` is a head written down earlier."""
    lines, head = read_lines(folder), read_head(folder)
    found = []
    previous, number = BEGINNING, 0
    for place, line in enumerate(lines, 1):
        said = _parse(line)
        if said is not None and said.get("line") != number + 1:
            found.append(f"before line {said.get('line')!r}: lines after {number} were removed, added or moved")
        elif said is not None and said.get("previous") != previous:
            found.append(f"line {number} was changed after line {number + 1} was written")
        elif said is None and place == len(lines) and head is not None and head.lines >= place:
            found.append(f"line {place}, the last one, can't be read")
        number = said["line"] if said is not None and isinstance(said.get("line"), int) else number + 1
        previous = _hash(line)
    if head is None:
        found.append(f"{folder / HEAD} can't be read, so lines may be missing at the end")
    elif not _ends_at(lines, head):
        found.append(f"the last line should be line {head.lines} with the hash {head.hash[:12]}…, but it is not")
    if known and known not in map(_hash, lines):
        found.append(f"no line has the hash {known[:12]}…, which was the last one once")
    return found


def messages_in(folder: Path) -> list[dict[str, Any]]:
    """Return what the lines of a record say, without those that a crash has cut off."""
    return [said for line in read_lines(folder) if (said := _parse(line)) is not None]


def _parse(line: bytes) -> dict[str, Any] | None:
    try:
        said = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return said if isinstance(said, dict) else None


def _hash(line: bytes) -> str:
    return hashlib.sha256(line).hexdigest()


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Let one process at a time write to a record."""
    with open(folder / ".sent.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
