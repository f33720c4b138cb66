"""Characters that take a while to prepare are prepared once, and kept compressed."""

import io
import logging
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from fedcso import atomic
from fedcso.datasets.characters import SIDE, Characters
from fedcso.datasets.places import cache_folder

log = logging.getLogger("fedcso")

DAMAGE = (OSError, EOFError, KeyError, ValueError, NotImplementedError, zipfile.BadZipFile, zlib.error)
"""How a file can turn out not to be what was written; the checksums in it reveal any change."""


def kept(name: str, digest: str, make: Callable[[], Characters]) -> Characters:
    """The characters from the cache; if they are not there, or not whole, from `make`, and into the cache.

    `digest` stands for all that the result depends on, so a file by that name never is out of date.
    """
    file = cache_folder() / f"{name}-{digest[:16]}.npz"
    try:
        return _load(file)
    except FileNotFoundError:
        log.info("preparing %s, once; this takes some seconds", name)
    except DAMAGE as error:
        log.warning("%s is damaged (%s); preparing it again", file, error)
    characters = make()
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        atomic.write(file, _pack(characters))
    except OSError as error:
        log.warning("could not keep %s for the next time (%s)", name, error)
    return characters


def _pack(characters: Characters) -> bytes:
    buffer = io.BytesIO()
    arrays = {split: images.numpy() for split, images in characters._asdict().items()}
    np.savez_compressed(buffer, allow_pickle=False, **arrays)
    return buffer.getvalue()


def _load(file: Path) -> Characters:
    with np.load(io.BytesIO(file.read_bytes()), allow_pickle=False) as arrays:
        return Characters(*(_whole(arrays[split]) for split in Characters._fields))


def _whole(array: np.ndarray) -> torch.Tensor:
    if array.dtype != np.uint8 or array.ndim != 4 or array.shape[2:] != (SIDE, SIDE):
        raise ValueError(f"it holds {array.dtype} of {array.shape}")
    return torch.from_numpy(array)
