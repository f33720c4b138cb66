"""Write files atomically: temporary file, fsync, rename."""

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path


def write(path: Path, content: bytes | str | Iterable[bytes], mode: int = 0o644) -> None:
    """Write `content`, given as a whole or in pieces, to `path`; readers see either the old file or the new one."""
    whole = content.encode() if isinstance(content, str) else content
    pieces = [whole] if isinstance(whole, bytes) else whole
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            for piece in pieces:
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, mode)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)  # makes the rename durable
    finally:
        os.close(directory)
