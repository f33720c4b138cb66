"""Folders of small images, made for tests of few-shot learning on one's own images."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest

Image = pytest.importorskip("PIL.Image", reason="needs pillow: pip install 'fedcso[images]'")

SIDE = 20
OPTIONS = {
    "clients": 2,
    "ways": 2,
    "queries": 3,
    "filters": 4,
    "image_size": 16,
    "test_tasks": 2,
    "validation_tasks": 2,
    "client_tasks": 1,
}
"""Options of `maml` and `pretraining` for the images of ten classes."""
ON_THE_COMMAND_LINE = [
    *(word for name, value in OPTIONS.items() for word in (f"--{name}", str(value))),
    *("--rounds", "1", "--local_steps", "1", "--seeds", "1", "--algorithm", "FCSG"),
]


def picture(number: int, seed: int, colour: bool = False, side: int = SIDE) -> "Image.Image":
    """Return a pattern of blocks, which depends on the number, with some noise."""
    blocks = np.random.default_rng(number).integers(0, 2, (5, 5))
    shape = (side, side, 3) if colour else (side, side)
    noise = np.random.default_rng((number, seed)).integers(0, 50, shape)
    large = blocks.repeat(side // 5, 0).repeat(side // 5, 1) * 200
    return Image.fromarray((noise + (large[..., None] if colour else large)).astype(np.uint8))


def write_classes(
    folder: Path, classes: int | Iterable[int] = 10, images: int | Iterable[int] = 5, colour: bool = False
) -> Path:
    """Write a folder with a subfolder for each class, `class00` and so on, and return it."""
    numbers = range(classes) if isinstance(classes, int) else list(classes)
    for number in numbers:
        place = folder / f"class{number:02}"
        place.mkdir(parents=True, exist_ok=True)
        for seed in range(images) if isinstance(images, int) else images:
            picture(number, seed, colour).save(place / f"{seed}.png")
    return folder
