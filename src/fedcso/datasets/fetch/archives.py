"""Read compressed files and archives safely: up to a limit, and without unpacking anything to disk.

A few kilobytes can decompress to terabytes, and names in an archive can point anywhere. Reading therefore stops at a
limit, and members are read by name, never written.
"""

import gzip
import io
import lzma
import tarfile
import zlib
from collections.abc import Collection
from pathlib import Path

from fedcso.core.errors import FedcsoError

UNREADABLE = (OSError, EOFError, zlib.error, lzma.LZMAError, tarfile.TarError)
"""Errors of files that are damaged or not in the format of their name."""


def read_file(file: Path, limit: int) -> bytes:
    """Return the content of a file, decompressed if its name ends in .gz or .xz; raise if it exceeds `limit` bytes."""
    try:
        with _open(file) as stream:
            data = stream.read(limit + 1)
    except UNREADABLE as error:
        raise FedcsoError(f"{file} can't be read ({error}); download it again") from error
    if len(data) > limit:
        raise FedcsoError(f"{file} is larger than {limit} bytes, the limit for this file")
    return data


def _open(file: Path) -> io.BufferedIOBase:
    if file.suffix == ".gz":
        return gzip.GzipFile(file)
    return lzma.LZMAFile(file) if file.suffix == ".xz" else file.open("rb")


def read_members(file: Path, wanted: Collection[str], limit: int) -> dict[str, bytes]:
    """Return the content of the wanted members of a .tar.gz by name; raise if the archive exceeds `limit` bytes.

    Links, folders and other members are ignored. Wanted members that don't exist are not in the result.
    """
    found = {}
    try:
        with gzip.GzipFile(file) as stream, tarfile.open(fileobj=_Limited(stream, file, limit), mode="r|") as archive:
            for member in archive:
                name = member.name.removeprefix("./")
                data = archive.extractfile(member) if name in wanted and member.isreg() else None
                if data is not None:
                    found[name] = data.read(limit)
    except UNREADABLE as error:
        raise FedcsoError(f"{file} can't be read ({error}); download it again") from error
    return found


class _Limited(io.RawIOBase):
    """A stream that raises an error when more than `limit` bytes are read."""

    def __init__(self, stream: io.BufferedIOBase, file: Path, limit: int):
        self.stream, self.file, self.limit, self.left = stream, file, limit, limit

    def read(self, size: int = -1) -> bytes:
        """Read and count bytes."""
        data = self.stream.read(size)
        self.left -= len(data)
        if self.left < 0:
            raise FedcsoError(f"{self.file} is larger than {self.limit} bytes, the limit for this archive")
        return data
