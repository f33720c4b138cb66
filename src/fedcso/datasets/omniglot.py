"""Omniglot: 1623 characters of 50 alphabets, each drawn by 20 people (Lake et al., Science 2015).

The pictures are found as folders or as zip files (see `LAYOUTS`), checked against a digest of all pixels, shrunk
from 105×105 to 28×28, and kept in the cache. Archives are never unpacked: their members are read by name, with a
limit, so it does not matter what else an archive holds.
"""

import hashlib
import io
import re
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pooch
import torch
from PIL import Image

from fedcso.core.errors import FedcsoError
from fedcso.datasets.characters import SIDE, Characters
from fedcso.datasets.fetch.cache import kept
from fedcso.datasets.fetch.places import DataMissing, cache_folder, data_folders

PARTS = {"images_background": 964, "images_evaluation": 659}
"""The two halves as published, and how many characters each has."""

LAYOUTS = ("", "omniglot-py", "omniglot", "omniglot/python")
"""Folders, below those searched, in which the halves may lie (torchvision's, and a clone of the authors')."""

SOURCE = "https://raw.githubusercontent.com/brendenlake/omniglot/master/python/"
DIGEST = "d8bcd7703a7a3b48997443d0fe46827c855d8af49a038fb522a747d0604cae07"
"""SHA-256 over the name and the pixels, one bit each, of all pictures in the order of their names."""

DRAWINGS = 20
ORIGINAL_SIDE = 105
MOST_BYTES = 1_000_000
MOST_MEMBERS = 100_000
"""Far more than Omniglot needs, and little enough to do no harm."""

NOT_PNG = (OSError, SyntaxError, ValueError, EOFError, struct.error, zlib.error, Image.DecompressionBombError)
NOT_ZIP = (OSError, EOFError, NotImplementedError, RuntimeError, zipfile.BadZipFile, zlib.error)
"""How files turn out not to be what their names say; RuntimeError is for archives with a password."""

VALIDATION = ("Armenian", "Bengali", "Early_Aramaic", "Hebrew", "Mkhedruli_(Georgian)")
TRAIN_FROM_EVALUATION = 236
"""The usual split into 1028, 172 and 423 characters (torchmeta's, after Vinyals et al., 2016) in two rules."""


def omniglot(root: Path | None = None) -> Characters:
    """The characters from `root`, or from the folders of FEDCSO_DATA, or from the cache folder.

    Only the published pictures are accepted, so what is in the cache is the same whichever copy it was made from,
    and is used before any copy is looked for.
    """
    return kept("omniglot", DIGEST, lambda: _prepare(find(root)))


def fetch(root: Path | None = None) -> None:
    """Download both halves into `root`, or the cache folder, and check what came."""
    folder = (root or cache_folder()) / "omniglot-py"
    files = [folder / f"{part}.zip" for part in PARTS]
    new = [file for file in files if not file.exists()]
    try:
        for file in new:
            pooch.retrieve(SOURCE + file.name, known_hash=None, fname=file.name, path=folder)
    except OSError as error:
        raise DataMissing(f"Omniglot could not be downloaded ({error}). Instead, {_remedy(folder)}") from error
    try:
        _prepare(files)
    except FedcsoError:
        for file in new:  # so that the next attempt starts afresh
            file.unlink()
        raise


def find(root: Path | None = None) -> list[Path]:
    """The zip file or folder of each half, in the first place that has both."""
    for base in data_folders(root):
        for folder in (base / layout for layout in LAYOUTS):
            halves = [_zip_or_folder(folder, part) for part in PARTS]
            if all(half.exists() for half in halves):
                return halves
    searched = ", ".join(map(str, data_folders(root)))
    remedy = _remedy((root or cache_folder()) / "omniglot-py")
    raise DataMissing(f"Omniglot was not found in {searched}. Run fedcso data get omniglot, or {remedy}", fetch)


def _zip_or_folder(folder: Path, part: str) -> Path:
    packed = folder / f"{part}.zip"
    return packed if packed.is_file() else folder / part


def _remedy(folder: Path) -> str:
    files = " and ".join(f"{part}.zip" for part in PARTS)
    return f"put {files} from {SOURCE} into {folder}; or set FEDCSO_DATA to the folder that holds your omniglot-py"


def _prepare(halves: Sequence[Path]) -> Characters:
    drawings, digest = read(halves)
    verify(drawings, digest)
    splits = ([drawings[name] for name in names] for names in split(drawings))
    return Characters(*(torch.from_numpy(np.array(images)) for images in splits))


def split(names: Iterable[str]) -> tuple[list[str], list[str], list[str]]:
    """The characters to train on, to validate on, and to test on.

    Five alphabets of the background half are for validation; its others, and the evaluation half up to character
    41 of Gurmukhi, are for training; the rest of the evaluation half is the test.
    """
    ordered = sorted(names)
    background = [name for name in ordered if name.startswith("images_background/")]
    evaluation = [name for name in ordered if name.startswith("images_evaluation/")]
    validation = [name for name in background if name.split("/")[1] in VALIDATION]
    others = [name for name in background if name.split("/")[1] not in VALIDATION]
    return others + evaluation[:TRAIN_FROM_EVALUATION], validation, evaluation[TRAIN_FROM_EVALUATION:]


def read(halves: Sequence[Path]) -> tuple[dict[str, list[np.ndarray]], str]:
    """All drawings, shrunk, by character (half/alphabet/character); and the digest of what they were made from."""
    content = hashlib.sha256()
    drawings: dict[str, list[np.ndarray]] = {}
    for half in halves:
        for name, data in _from_zip(half) if half.is_file() else _from_folder(half):
            picture = _decode(name, data)
            content.update(name.encode() + picture.tobytes())
            drawings.setdefault(name.rpartition("/")[0], []).append(_shrink(picture))
    return drawings, content.hexdigest()


def verify(drawings: Mapping[str, Sequence[np.ndarray]], digest: str) -> None:
    """Name what is missing or too many; where the numbers are right, the pixels must be too."""
    for name, images in drawings.items():
        if len(images) != DRAWINGS:
            raise FedcsoError(f"Omniglot is not whole: {name} has {len(images)} drawings instead of {DRAWINGS}")
    for part, expected in PARTS.items():
        found = sum(name.startswith(f"{part}/") for name in drawings)
        if found != expected:
            raise FedcsoError(f"Omniglot is not whole: {part} has {found} characters instead of {expected}")
    if digest != DIGEST:
        raise FedcsoError(f"Omniglot's pictures are not the published ones: their digest is {digest}, not {DIGEST}")


def _pattern(part: str) -> re.Pattern[str]:
    return re.compile(rf"{part}/[^/]+/character\d\d/\d{{4}}_\d\d\.png")


def _from_zip(file: Path) -> Iterator[tuple[str, bytes]]:
    """Pictures by name, in order; the name is only compared, never used as a path."""
    pattern = _pattern(file.stem)
    try:
        with zipfile.ZipFile(file) as archive:
            if len(archive.infolist()) > MOST_MEMBERS:
                raise FedcsoError(f"{file} has {len(archive.infolist())} members; {MOST_MEMBERS} would be too many")
            for name in sorted(filter(pattern.fullmatch, archive.namelist())):
                with archive.open(name) as member:
                    yield name, _limited(name, member.read(MOST_BYTES + 1))
    except NOT_ZIP as error:
        raise FedcsoError(f"{file} can't be read ({error}); get it again") from error


def _from_folder(folder: Path) -> Iterator[tuple[str, bytes]]:
    """The same from unpacked pictures."""
    pattern = _pattern(folder.name)
    names = (file.relative_to(folder.parent).as_posix() for file in folder.glob("*/*/*.png"))
    for name in sorted(filter(pattern.fullmatch, names)):
        with (folder.parent / name).open("rb") as file:
            yield name, _limited(name, file.read(MOST_BYTES + 1))


def _limited(name: str, data: bytes) -> bytes:
    if len(data) > MOST_BYTES:
        raise FedcsoError(f"{name} is larger than {MOST_BYTES} bytes, which no picture of Omniglot is")
    return data


def _decode(name: str, data: bytes) -> Image.Image:
    """The picture in black and white; its size is looked at before its pixels are."""
    try:
        with Image.open(io.BytesIO(data), formats=["PNG"]) as picture:
            if picture.size != (ORIGINAL_SIDE, ORIGINAL_SIDE):
                width, height = picture.size
                raise FedcsoError(f"{name} is {width}×{height} pixels instead of {ORIGINAL_SIDE}×{ORIGINAL_SIDE}")
            return picture.convert("1", dither=Image.Dither.NONE)
    except NOT_PNG as error:
        raise FedcsoError(f"{name} is not a PNG picture ({error})") from error


def _shrink(picture: Image.Image) -> np.ndarray:
    """By area, and inverted: black ink becomes 255."""
    small = picture.convert("L").resize((SIDE, SIDE), Image.Resampling.BOX)
    return 255 - np.asarray(small)
