"""Published files, verified by the digest of their content, whatever source and compression they come from."""

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
    """Size in bytes and SHA-256 of a file's uncompressed content."""

    size: int
    digest: str


def combined_digest(files: Mapping[str, Published]) -> str:
    """Return one digest for all files of a data set."""
    return hashlib.sha256("".join(file.digest for file in files.values()).encode()).hexdigest()


def verify(title: str, contents: Mapping[str, bytes], files: Mapping[str, Published]) -> None:
    """Raise `FedcsoError` if a file is missing or is not the published one."""
    for name, file in files.items():
        if name not in contents:
            raise FedcsoError(f"{title} is incomplete: {name} is missing")
        if len(contents[name]) != file.size:
            raise FedcsoError(f"{title} is damaged: {name} has {len(contents[name])} bytes instead of {file.size}")
        digest = hashlib.sha256(contents[name]).hexdigest()
        if digest != file.digest:
            raise FedcsoError(f"{title}: {name} is not the published file: its digest is {digest}, not {file.digest}")


@contextmanager
def temporary_download(address: str) -> Iterator[Path]:
    """Download a file, and delete it at the end of the `with` block."""
    with TemporaryDirectory() as folder:
        name = address.rpartition("/")[2]
        pooch.retrieve(address, known_hash=None, fname=name, path=folder)
        yield Path(folder, name)


def download_published(
    title: str,
    folder: Path,
    files: Mapping[str, Published],
    sources: Mapping[str, Callable[[], Mapping[str, bytes]]],
    remedy: str,
) -> None:
    """Try the sources in turn, and write the files of the first that has the published ones to the folder.

    Nothing else is ever written to the folder, and existing files are not changed. Raise `DataMissing` with `remedy`
    if no source works.
    """
    reasons = []
    for name, source in sources.items():
        try:
            contents = source()
            verify(title, contents, files)
        except (OSError, FedcsoError) as error:
            reasons.append(f"{name}: {error}")
            continue
        return _write(folder, contents)
    raise DataMissing(f"{title} could not be downloaded ({'; '.join(reasons)}). Instead, {remedy}")


def _write(folder: Path, contents: Mapping[str, bytes]) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in contents.items():
            if not (folder / name).exists():
                atomic.write(folder / name, data)
    except OSError as error:
        raise FedcsoError(f"{folder} can't be written ({error}); set FEDCSO_CACHE to a writable folder") from error
