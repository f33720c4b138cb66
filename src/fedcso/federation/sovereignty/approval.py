"""The code that a site runs: apps whose digest is on the site's list, `approved.json` in its folder.

An app's digest is over the paths and contents of all its files but one: the settings, `config.yaml`, which no site
reads. They come with every message, and the site's policy judges them. Of pyproject.toml the content counts, not how
it is written, because Flower writes it anew.
"""

import hashlib
import io
import json
import tomllib
import warnings
import zipfile
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fedcso.core import atomic
from fedcso.core.errors import FedcsoError

FILE = "approved.json"
SETTINGS = "federated/config.yaml"
PROJECT = "pyproject.toml"

Files = Mapping[str, bytes]
"""The files of an app: contents by path."""

Digests = dict[str, str]
"""The digests of an app's files by path."""


def files_of_installed(folder: Path) -> Files:
    """Return all files of an app as Flower has installed it: what is in the folder can be run."""
    paths = (path for path in sorted(folder.rglob("*")) if path.is_file() or path.is_symlink())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def files_of_app(folder: Path) -> Files:
    """Return the files of an app that Flower sends to sites; raise if the folder does not hold an app."""
    with zipfile.ZipFile(io.BytesIO(build(folder))) as built:
        return {name: built.read(name) for name in built.namelist() if not name.startswith(".info/")}


def build(folder: Path) -> bytes:
    """Return an app as Flower sends it; raise if the folder does not hold an app."""
    from flwr.cli.build import build_fab_from_disk  # imported here because Flower loads slowly

    if not (folder / PROJECT).is_file():
        raise FedcsoError(f"{folder} is not an app: it has no {PROJECT}; name the folder `app` of the coordinator")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of what Flower uses
            return bytes(build_fab_from_disk(folder))
    except (ValueError, OSError) as error:
        raise FedcsoError(f"Flower can't build the app in {folder}: {' '.join(str(error).split())}") from error


def digests(files: Files) -> Digests:
    """Return the digest of each file that counts."""
    return {path: _digest(path, content) for path, content in sorted(files.items()) if path != SETTINGS}


def digest(files: Files) -> str:
    """Return the digest of an app."""
    return hashlib.sha256(json.dumps(digests(files)).encode()).hexdigest()


def _digest(path: str, content: bytes) -> str:
    if path == PROJECT:
        with suppress(ValueError, RecursionError):  # of what is not TOML, what is written counts
            content = json.dumps(tomllib.loads(content.decode()), sort_keys=True, default=str).encode()
    return hashlib.sha256(content).hexdigest()


def read_approved(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the approved apps by digest, in order of approval; raise if the list can't be read."""
    path = folder / FILE
    if not path.is_file():
        return {}
    try:
        approved = json.loads(path.read_text())
        return {str(app): {"when": about["when"], "files": dict(about["files"])} for app, about in approved.items()}
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise FedcsoError(f"the list of approved apps {path} can't be read ({error}); no app is approved") from error


def approve(folder: Path, files: Files) -> str:
    """Add an app to a site's list, and return its digest."""
    approved, new = read_approved(folder), digest(files)
    approved[new] = {"when": datetime.now(UTC).isoformat(timespec="seconds"), "files": digests(files)}
    folder.mkdir(parents=True, exist_ok=True)
    atomic.write(folder / FILE, json.dumps(approved, indent=1))
    return new


def changes(folder: Path, files: Files) -> dict[str, str]:
    """Return by path what differs from the app that was approved last: new, changed or removed."""
    approved = list(read_approved(folder).values())
    before, now = approved[-1]["files"] if approved else {}, digests(files)
    said = {path: "new" if path not in before else "changed" for path in now if now[path] != before.get(path)}
    return said | {path: "removed" for path in before if path not in now}
