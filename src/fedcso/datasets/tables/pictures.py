"""Read pictures as bytes (number, channels, height, width) from an array, or from the files named in a column."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fedcso.core.errors import FedcsoError

ENDINGS = (".png", ".jpg", ".jpeg")
FORMATS = ("PNG", "JPEG")

CHANNELS = (1, 3)
"""The allowed numbers of channels: grey, or red, green and blue."""


def from_array(array: np.ndarray, file: Path) -> tuple[np.ndarray, list[str]]:
    """Return pictures as bytes, and a note if their axes were reordered; raise if the values can't be pixels."""
    notes = []
    if array.shape[1] not in CHANNELS and array.shape[3] in CHANNELS:
        array = np.moveaxis(array, 3, 1)
        notes = [f"{file.name}: the last axis of the pictures is read as their channels"]
    if array.shape[1] not in CHANNELS:
        shape = "×".join(map(str, array.shape))
        raise FedcsoError(
            f"the pictures of {file} have the shape {shape}; it must be (number, channels, height, width), with one "
            "channel or three"
        )
    return np.ascontiguousarray(_bytes(array, file)), notes


def _bytes(array: np.ndarray, file: Path) -> np.ndarray:
    """Return pixels from 0 to 255, or from 0 to 1, as bytes."""
    if array.dtype == np.uint8 or not array.size:
        return array.astype(np.uint8)
    least, most = float(array.min()), float(array.max())
    if not (least >= 0 and most <= 255):
        raise FedcsoError(
            f"the pixels of {file} lie between {least:g} and {most:g}; scale them: they must lie between 0 and 255, or "
            "between 0 and 1"
        )
    scaled = array * 255 if array.dtype.kind == "f" and most <= 1 else array
    return np.asarray(np.rint(scaled).astype(np.uint8))


def names_pictures(column: pd.Series) -> bool:
    """Return whether all values of a column are names of picture files."""
    if column.dtype.kind in "biufmM":
        return False
    given = column.dropna()
    if not len(given) or pd.api.types.infer_dtype(given) != "string":
        return False
    return all(str(value).strip().lower().endswith(ENDINGS) for value in pd.unique(given))


def from_files(column: pd.Series, table: Path) -> np.ndarray:
    """Return the pictures named in a column, in grey if all of them are grey; paths are relative to the table.

    The index of the column has the row numbers of the table, for error messages.
    """
    opened: list[Any] = []
    for row, name in zip(column.index, column, strict=True):
        where = f" in row {row + 1} of {table}"
        if pd.isna(name) or not str(name).strip():
            raise FedcsoError(f"column {column.name!r} has no value{where}; name a picture, or remove the row")
        path = table.parent / str(name).strip()
        if not path.exists():
            raise FedcsoError(
                f"column {column.name!r} names {path}{where}, which is not there; paths are relative to the table"
            )
        opened.append(open_picture(path, where))
        if opened[-1].size != opened[0].size:
            sizes = ["×".join(map(str, picture.size)) for picture in (opened[0], opened[-1])]
            raise FedcsoError(
                f"{path}{where} has {sizes[1]} pixels, and the first picture has {sizes[0]}; resize them: all must "
                "have the same size"
            )
    grey = all(picture.mode == "L" for picture in opened)
    arrays = [np.asarray(picture if grey else picture.convert("RGB")) for picture in opened]
    stacked = np.stack(arrays)
    return stacked[:, None] if grey else np.ascontiguousarray(np.moveaxis(stacked, 3, 1))


def open_picture(path: Path, where: str = "") -> Any:
    """Return a PNG or JPEG file as a picture of PIL, in grey (L) or in colour (RGB); transparency is ignored.

    Messages name the file by its path, followed by `where`.
    """
    try:
        from PIL import Image, ImageOps
    except ImportError as error:
        raise FedcsoError(f"reading {path} needs pillow: pip install pillow") from error
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(path, formats=FORMATS) as picture:
                picture.load()
                upright = ImageOps.exif_transpose(picture)  # photographs may be stored lying
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise FedcsoError(f"{path}{where} is too large a picture ({error}): reduce its size") from error
    except (OSError, SyntaxError, ValueError) as error:
        raise FedcsoError(f"{path}{where} can't be read as a picture ({error}): save it as PNG or JPEG") from error
    if upright.mode.startswith(("I", "F")):
        raise FedcsoError(f"{path}{where} has more than 8 bits for a grey pixel: save it with 8 bits")
    return upright.convert("L" if upright.mode in ("1", "L", "LA") else "RGB")


def scaled(pixels: np.ndarray) -> np.ndarray:
    """Return bytes as float32 in [−1, 1], which is what networks for pictures are given."""
    return np.asarray(pixels.astype(np.float32) / np.float32(127.5) - np.float32(1))
