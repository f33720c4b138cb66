"""Published files: known by the digest of what they hold, whichever way and packing they came in."""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pooch

from fedcso.core import atomic
from fedcso.core.errors import FedcsoError
from fedcso.datasets.fetch.places import DataMissing


class Published(NamedTuple):
    """How many bytes a file has, unpacked, and their SHA-256."""

    size: int
    digest: str


def key(files: Mapping[str, Published]) -> str:
    """One digest for all files of a data set."""
    return hashlib.sha256("".join(file.digest for file in files.values()).encode()).hexdigest()


def verify(title: str, contents: Mapping[str, bytes], files: Mapping[str, Published]) -> None:
    """Name the first file that is missing or not the published one."""
    for name, file in files.items():
        if name not in contents:
            raise FedcsoError(f"{title} is not whole: {name} is missing")
        if len(contents[name]) != file.size:
            raise FedcsoError(f"{title} is not whole: {name} has {len(contents[name])} bytes instead of {file.size}")
        digest = hashlib.sha256(contents[name]).hexdigest()
        if digest != file.digest:
            raise FedcsoError(f"{title}: {name} is not the published file: its digest is {digest}, not {file.digest}")


@contextmanager
def downloaded(address: str) -> Iterator[Path]:
    """The file from this address, for as long as it is needed."""
    with TemporaryDirectory() as folder:
        name = address.rpartition("/")[2]
        pooch.retrieve(address, known_hash=None, fname=name, path=folder)
        yield Path(folder, name)


def obtain(
    title: str,
    folder: Path,
    files: Mapping[str, Published],
    ways: Mapping[str, Callable[[], Mapping[str, bytes]]],
    remedy: str,
) -> None:
    """Try one way after the other, and put the files of the first that has the published ones into the folder.

    Nothing else ever gets into the folder, and files that are there already stay as they are.
    """
    reasons = []
    for name, way in ways.items():
        try:
            contents = way()
            verify(title, contents, files)
        except (OSError, FedcsoError) as error:
            reasons.append(f"{name}: {error}")
            continue
        return _put(folder, contents)
    raise DataMissing(f"{title} could not be downloaded ({'; '.join(reasons)}). Instead, {remedy}")


def _put(folder: Path, contents: Mapping[str, bytes]) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in contents.items():
            if not (folder / name).exists():
                atomic.write(folder / name, data)
    except OSError as error:
        raise FedcsoError(f"{folder} can't be written ({error}); set FEDCSO_CACHE to a folder that can") from error
