"""Letters of fourteen scripts in matplotlib's DejaVu fonts, distorted like handwriting; no download.

Like Omniglot, it has 20 drawings of 28×28 pixels for each character, and the characters for testing are of scripts that
are not used for training. Letters with accents are left out, and so are letters that look like an earlier one (Greek Α
after Latin A).
"""

import hashlib
import unicodedata
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageFont

from fedcso.datasets import handwriting
from fedcso.datasets.characters import Characters
from fedcso.datasets.fetch.cache import cached_characters

SCRIPTS = {
    "train": ("LATIN", "CYRILLIC", "CANADIAN"),
    "validation": ("GREEK", "COPTIC", "ARMENIAN", "HEBREW"),
    "test": ("GEORGIAN", "ARABIC", "TIFINAGH", "LAO", "NKO", "OLD", "OGHAM"),
}
"""The scripts of each split, named by the first word of their letters' Unicode names (OLD is Old Italic)."""

FACES = ("Sans", "Serif", "SansMono", "Sans-Oblique", "Serif-Italic", "Sans-Bold")
"""Faces of the DejaVu fonts; a letter must be in the first, and is drawn from all that contain it."""

DRAWINGS = 20
FIELD = 64
LETTER = 44
"""Side of a distance field, and of the letter in its centre."""

TYPE_SIZE = 96
SMALLEST = 50
"""Letters are rendered in this type size; those smaller than `SMALLEST` are not enlarged to fill the field."""

ALIKE = 0.93
"""Letters whose blurred pictures have a higher correlation than this count as one class."""


def glyphs() -> Characters:
    """Return about 1100 letters with 20 drawings each, made once and then read from the cache."""
    recipe = hashlib.sha256()
    for file in (Path(__file__), Path(handwriting.__file__), *map(_file, FACES)):
        recipe.update(file.read_bytes())
    return cached_characters("glyphs", recipe.hexdigest(), _make)


def _make() -> Characters:
    rng = torch.Generator().manual_seed(0)
    return Characters(**{split: _drawings(letters, rng) for split, letters in distinct_letters().items()})


def distinct_letters() -> dict[str, list[str]]:
    """Return the letters of each split, without those that look like an earlier letter of any split."""
    split_of = {
        letter: split for split, scripts in SCRIPTS.items() for script in scripts for letter in _letters(script)
    }
    letters = list(split_of)
    from scipy.ndimage import gaussian_filter  # imported here because it is slow to load

    blurred = np.stack([gaussian_filter(_picture(letter, FACES[0]), 2)[::2, ::2].ravel() for letter in letters])
    blurred /= np.linalg.norm(blurred, axis=1, keepdims=True)
    alike = blurred @ blurred.T > ALIKE
    chosen: list[int] = []
    for number in range(len(letters)):
        if not alike[number, chosen].any():
            chosen.append(number)
    return {split: [letters[n] for n in chosen if split_of[letters[n]] == split] for split in SCRIPTS}


def _letters(script: str) -> list[str]:
    """Return the script's letters without accents, in Unicode order."""
    return [
        letter
        for letter in map(chr, sorted(_codes(FACES[0])))
        if unicodedata.category(letter) in ("Lu", "Ll", "Lo")
        and not unicodedata.decomposition(letter)
        and unicodedata.name(letter).split()[0] == script
    ]


def _drawings(letters: Sequence[str], rng: torch.Generator) -> torch.Tensor:
    """Return all drawings of all letters, made one letter at a time to save memory."""
    return torch.stack([handwriting.draw(_fields(letter), rng) for letter in letters])


def _fields(letter: str) -> torch.Tensor:
    """Return a distance field for each drawing, from the letter's faces in turn."""
    faces = [face for face in FACES if ord(letter) in _codes(face)]
    fields = torch.from_numpy(np.stack([handwriting.distance_field(_picture(letter, face) > 0.5) for face in faces]))
    return fields[torch.arange(DRAWINGS) % len(faces)]


def _picture(letter: str, face: str) -> np.ndarray:
    """Return the printed letter, ink 1, in the centre of a field."""
    mask = _font(face).getmask(letter, "L")
    printed = Image.frombytes("L", mask.size, bytes(mask))
    printed = printed.crop(printed.getbbox())
    factor = LETTER / max(*printed.size, SMALLEST)
    width, height = (max(1, round(factor * side)) for side in printed.size)
    field = Image.new("L", (FIELD, FIELD))
    field.paste(printed.resize((width, height), Image.Resampling.BOX), ((FIELD - width) // 2, (FIELD - height) // 2))
    return np.asarray(field, dtype=np.float32) / 255


def _file(face: str) -> Path:
    import matplotlib  # imported here because it is slow to load

    return Path(matplotlib.get_data_path(), "fonts", "ttf", f"DejaVu{face}.ttf")


@cache
def _font(face: str) -> ImageFont.FreeTypeFont:
    return ImageFont.truetype(str(_file(face)), TYPE_SIZE, layout_engine=ImageFont.Layout.BASIC)


@cache
def _codes(face: str) -> frozenset[int]:
    """Return the code points that a face contains."""
    from matplotlib.ft2font import FT2Font

    return frozenset(FT2Font(str(_file(face))).get_charmap())
