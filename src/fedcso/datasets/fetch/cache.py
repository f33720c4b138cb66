"""A cache of prepared data sets, as zip files of arrays."""

import io
import logging
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch

from fedcso.core import atomic
from fedcso.core.notice import NOTICE
from fedcso.datasets.characters import SIDE, Characters
from fedcso.datasets.examples import Examples
from fedcso.datasets.fetch.places import cache_folder
from fedcso.datasets.images import Images

log = logging.getLogger("fedcso")

Data = TypeVar("Data")
Arrays = Mapping[str, np.ndarray]

DAMAGE = (
    *(OSError, EOFError, KeyError, ValueError, RuntimeError, SyntaxError),
    *(tokenize.TokenError, struct.error, zipfile.BadZipFile, zlib.error),
)
"""Errors of a damaged file, whose checksums reveal any change; headers of arrays are parsed as Python."""


def cached_characters(name: str, digest: str, make: Callable[[], Characters]) -> Characters:
    """Return the characters from the cache; if they are missing or damaged, make them and write them to the cache.

    `digest` identifies everything that the result depends on, so a file with that digest is never out of date.
    """
    return _cached(name, digest, make, _from_characters, _to_characters, np.savez_compressed)


def cached_images(name: str, digest: str, make: Callable[[], Images]) -> Images:
    """Return labelled pictures from the cache, as `cached_characters` does for characters.

    They are not compressed: photographs hardly get smaller, and compressing them takes longer than preparing them.
    """
    return _cached(name, digest, make, _from_images, _to_images, np.savez)


def _cached(
    name: str,
    digest: str,
    make: Callable[[], Data],
    to_arrays: Callable[[Data], Arrays],
    from_arrays: Callable[[Arrays], Data],
    save: Callable[..., None],
) -> Data:
    file = cache_folder() / f"{name}-{digest[:16]}.npz"
    try:
        return from_arrays(_load(file))
    except FileNotFoundError:
        log.log(NOTICE, "preparing %s for the first time; this can take half a minute", name)
    except DAMAGE as error:
        log.warning("%s is damaged (%s); preparing it again", file, error)
    data = make()
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        buffer = io.BytesIO()
        save(buffer, allow_pickle=False, **to_arrays(data))
        atomic.write(file, buffer.getvalue())
    except OSError as error:
        log.warning("could not write %s to the cache (%s)", name, error)
    return data


def _load(file: Path) -> dict[str, np.ndarray]:
    with np.load(io.BytesIO(file.read_bytes()), allow_pickle=False) as arrays:
        return dict(arrays)


def _from_characters(characters: Characters) -> Arrays:
    return {split: images.numpy() for split, images in characters._asdict().items()}


def _to_characters(arrays: Arrays) -> Characters:
    return Characters(*(_drawings(arrays[split]) for split in Characters._fields))


def _drawings(array: np.ndarray) -> torch.Tensor:
    if array.dtype != np.uint8 or array.ndim != 4 or array.shape[2:] != (SIDE, SIDE):
        raise ValueError(f"it contains {array.dtype} of {array.shape}")
    return torch.from_numpy(array)


def _from_images(images: Images) -> Arrays:
    """Return the arrays to write; labels are stored as bytes too."""
    return {
        f"{split}_{part}": tensor.numpy().astype(np.uint8)
        for split, examples in images._asdict().items()
        for part, tensor in examples._asdict().items()
    }


def _to_images(arrays: Arrays) -> Images:
    return Images(*(_examples(arrays[f"{split}_inputs"], arrays[f"{split}_labels"]) for split in Images._fields))


def _examples(inputs: np.ndarray, labels: np.ndarray) -> Examples:
    if inputs.dtype != np.uint8 or inputs.ndim != 4 or labels.dtype != np.uint8 or labels.shape != inputs.shape[:1]:
        raise ValueError(f"it contains {inputs.dtype} of {inputs.shape} and {labels.dtype} of {labels.shape}")
    return Examples(torch.from_numpy(inputs), torch.from_numpy(labels).to(torch.int64))
