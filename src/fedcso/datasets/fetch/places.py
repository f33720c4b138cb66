"""The folders where data sets are searched for and cached."""

import os
from collections.abc import Callable
from pathlib import Path

from fedcso.core.errors import FedcsoError


class DataMissing(FedcsoError):
    """A data set was not found or could not be downloaded; the message says which files to put where.

    `download` downloads the data set, or is None if it can't be downloaded.
    """

    def __init__(self, message: str, download: Callable[[], None] | None = None):
        self.download = download
        super().__init__(message)


def cache_folder() -> Path:
    """Return the folder for downloads and prepared data: FEDCSO_CACHE, or ~/.cache/fedcso."""
    return Path(os.environ.get("FEDCSO_CACHE") or "~/.cache/fedcso").expanduser()


def data_folders(root: Path | None = None) -> list[Path]:
    """Return the folders to search: `root` if it is given; otherwise those of FEDCSO_DATA, then the cache."""
    if root is not None:
        return [root]
    named = os.environ.get("FEDCSO_DATA", "").split(os.pathsep)
    return [*(Path(name).expanduser() for name in named if name), cache_folder()]
