"""What files and archives hold, never more of it than it can rightly be, and nothing is ever unpacked.

A few kilobytes can unfold to terabytes, and names in an archive can point anywhere. So reading stops at a limit,
and members are read by name, never written.
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
"""How files turn out not to be what their names say."""


def content(file: Path, most: int) -> bytes:
    """What the file holds, decompressed if its name ends in .gz or .xz; at most so many bytes."""
    try:
        with _open(file) as stream:
            data = stream.read(most + 1)
    except UNREADABLE as error:
        raise FedcsoError(f"{file} can't be read ({error}); get it again") from error
    if len(data) > most:
        raise FedcsoError(f"{file} is larger than {most} bytes, which it can't rightly be")
    return data


def _open(file: Path) -> io.BufferedIOBase:
    if file.suffix == ".gz":
        return gzip.GzipFile(file)
    return lzma.LZMAFile(file) if file.suffix == ".xz" else file.open("rb")


def members(file: Path, wanted: Collection[str], most: int) -> dict[str, bytes]:
    """What the wanted members of a .tar.gz hold, by name; at most so many bytes in the whole archive.

    Links, folders and members by other names are passed over; those that are not there are not in the result.
    """
    found = {}
    try:
        with gzip.GzipFile(file) as stream, tarfile.open(fileobj=_Limited(stream, file, most), mode="r|") as archive:
            for member in archive:
                name = member.name.removeprefix("./")
                data = archive.extractfile(member) if name in wanted and member.isreg() else None
                if data is not None:
                    found[name] = data.read(most)
    except UNREADABLE as error:
        raise FedcsoError(f"{file} can't be read ({error}); get it again") from error
    return found


class _Limited(io.RawIOBase):
    """A stream that ends in an error when too much comes out of it."""

    def __init__(self, stream: io.BufferedIOBase, file: Path, most: int):
        self.stream, self.file, self.most, self.left = stream, file, most, most

    def read(self, size: int = -1) -> bytes:
        """As ever, but counted."""
        data = self.stream.read(size)
        self.left -= len(data)
        if self.left < 0:
            raise FedcsoError(f"{self.file} is larger than {self.most} bytes, which it can't rightly be")
        return data
