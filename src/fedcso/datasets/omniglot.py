"""Omniglot: 1623 characters of 50 alphabets, each drawn by 20 people (Lake et al., Science 2015).

The pictures are searched for in folders and zip files (see `LAYOUTS`), verified by a digest of all pixels, reduced from
105×105 to 28×28, and kept in the cache. Archives are never unpacked: members are read by name, up to a limit, so other
content of an archive does not matter.
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
from fedcso.datasets.fetch.cache import cached_characters
from fedcso.datasets.fetch.places import DataMissing, cache_folder, data_folders

PARTS = {"images_background": 964, "images_evaluation": 659}
"""The two published halves, and the number of characters in each."""

LAYOUTS = ("", "omniglot-py", "omniglot", "omniglot/python")
"""Subfolders in which the halves are searched for (torchvision's, and a clone of the authors' repository)."""

SOURCE = "https://raw.githubusercontent.com/brendenlake/omniglot/master/python/"
DIGEST = "d8bcd7703a7a3b48997443d0fe46827c855d8af49a038fb522a747d0604cae07"
"""SHA-256 over names and pixels (one bit each) of all pictures, sorted by name."""

DRAWINGS = 20
ORIGINAL_SIDE = 105
MOST_BYTES = 1_000_000
MOST_MEMBERS = 100_000
"""Limits far above what Omniglot needs, but small enough to be harmless."""

NOT_PNG = (OSError, SyntaxError, ValueError, EOFError, struct.error, zlib.error, Image.DecompressionBombError)
NOT_ZIP = (OSError, EOFError, NotImplementedError, RuntimeError, zipfile.BadZipFile, zlib.error)
"""Errors of files that are not in the format of their name; RuntimeError is raised for encrypted archives."""

VALIDATION = ("Armenian", "Bengali", "Early_Aramaic", "Hebrew", "Mkhedruli_(Georgian)")
TRAIN_FROM_EVALUATION = 236
"""These two give the usual split into 1028, 172 and 423 characters (torchmeta's, after Vinyals et al., 2016)."""


def omniglot(root: Path | None = None) -> Characters:
    """Return the characters from `root`, or else from the folders of FEDCSO_DATA or the cache folder.

    Only the published pictures are accepted. The cache therefore has the same content whichever copy it was made from,
    and is used before any copy is searched for.
    """
    return cached_characters("omniglot", DIGEST, lambda: _prepare(find(root)))


def fetch(root: Path | None = None) -> None:
    """Download both halves into `root` or the cache folder, and verify them."""
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
        for file in new:  # so that the next attempt downloads them again
            file.unlink()
        raise


def find(root: Path | None = None) -> list[Path]:
    """Return the zip file or folder of each half, from the first folder that has both."""
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
    """Split characters into those for training, for validation and for testing.

    Five alphabets of the background half are for validation; its others, and the evaluation half up to character
    41 of Gurmukhi, are for training; the rest of the evaluation half is for testing.
    """
    ordered = sorted(names)
    background = [name for name in ordered if name.startswith("images_background/")]
    evaluation = [name for name in ordered if name.startswith("images_evaluation/")]
    validation = [name for name in background if name.split("/")[1] in VALIDATION]
    others = [name for name in background if name.split("/")[1] not in VALIDATION]
    return others + evaluation[:TRAIN_FROM_EVALUATION], validation, evaluation[TRAIN_FROM_EVALUATION:]


def read(halves: Sequence[Path]) -> tuple[dict[str, list[np.ndarray]], str]:
    """Return all drawings by character (half/alphabet/character), reduced in size, and the digest of the originals."""
    content = hashlib.sha256()
    drawings: dict[str, list[np.ndarray]] = {}
    for half in halves:
        for name, data in _from_zip(half) if half.is_file() else _from_folder(half):
            picture = _decode(name, data)
            content.update(name.encode() + picture.tobytes())
            drawings.setdefault(name.rpartition("/")[0], []).append(_shrink(picture))
    return drawings, content.hexdigest()


def verify(drawings: Mapping[str, Sequence[np.ndarray]], digest: str) -> None:
    """Raise `FedcsoError` if drawings or characters are missing or too many, or if the pixels are not as published."""
    for name, images in drawings.items():
        if len(images) != DRAWINGS:
            raise FedcsoError(f"Omniglot is incomplete: {name} has {len(images)} drawings instead of {DRAWINGS}")
    for part, expected in PARTS.items():
        found = sum(name.startswith(f"{part}/") for name in drawings)
        if found != expected:
            raise FedcsoError(f"Omniglot is incomplete: {part} has {found} characters instead of {expected}")
    if digest != DIGEST:
        raise FedcsoError(f"Omniglot's pictures are not the published ones: their digest is {digest}, not {DIGEST}")


def _pattern(part: str) -> re.Pattern[str]:
    return re.compile(rf"{part}/[^/]+/character\d\d/\d{{4}}_\d\d\.png")


def _from_zip(file: Path) -> Iterator[tuple[str, bytes]]:
    """Yield pictures sorted by name; names are only compared, never used as paths."""
    pattern = _pattern(file.stem)
    try:
        with zipfile.ZipFile(file) as archive:
            if len(archive.infolist()) > MOST_MEMBERS:
                raise FedcsoError(f"{file} has {len(archive.infolist())} members, over the limit of {MOST_MEMBERS}")
            for name in sorted(filter(pattern.fullmatch, archive.namelist())):
                with archive.open(name) as member:
                    yield name, _check_size(name, member.read(MOST_BYTES + 1))
    except NOT_ZIP as error:
        raise FedcsoError(f"{file} can't be read ({error}); download it again") from error


def _from_folder(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yield pictures sorted by name, from an unpacked archive."""
    pattern = _pattern(folder.name)
    names = (file.relative_to(folder.parent).as_posix() for file in folder.glob("*/*/*.png"))
    for name in sorted(filter(pattern.fullmatch, names)):
        with (folder.parent / name).open("rb") as file:
            yield name, _check_size(name, file.read(MOST_BYTES + 1))


def _check_size(name: str, data: bytes) -> bytes:
    if len(data) > MOST_BYTES:
        raise FedcsoError(f"{name} is larger than {MOST_BYTES} bytes, the limit for a picture")
    return data


def _decode(name: str, data: bytes) -> Image.Image:
    """Decode a picture to black and white; check its size before decoding its pixels."""
    try:
        with Image.open(io.BytesIO(data), formats=["PNG"]) as picture:
            if picture.size != (ORIGINAL_SIDE, ORIGINAL_SIDE):
                width, height = picture.size
                raise FedcsoError(f"{name} is {width}×{height} pixels instead of {ORIGINAL_SIDE}×{ORIGINAL_SIDE}")
            return picture.convert("1", dither=Image.Dither.NONE)
    except NOT_PNG as error:
        raise FedcsoError(f"{name} is not a PNG picture ({error})") from error


def _shrink(picture: Image.Image) -> np.ndarray:
    """Reduce a picture by averaging over areas, and invert it: black ink becomes 255."""
    small = picture.convert("L").resize((SIDE, SIDE), Image.Resampling.BOX)
    return 255 - np.asarray(small)
