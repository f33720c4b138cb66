"""Files that are either whole or not there: temporary file, fsync, rename."""

import os
import tempfile
from pathlib import Path


def write(path: Path, content: bytes | str, mode: int = 0o644) -> None:
    """Put `content` at `path` so that no one, at no moment, sees half of it."""
    data = content.encode() if isinstance(content, str) else content
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, mode)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)  # the rename itself
    finally:
        os.close(directory)
