"""Read folders of images, PNG and JPEG: which files they hold, and their pixels in one size, in grey or in colour."""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from fedcso.core.errors import FedcsoError
from fedcso.datasets.characters import ImageForm
from fedcso.datasets.tables.files import DOCUMENTS, listed
from fedcso.datasets.tables.pictures import ENDINGS, open_picture

MODES = {"grey": "L", "colour": "RGB"}
"""PIL's names for kinds of pixels."""


class Found(NamedTuple):
    """The images in a folder sorted by name, its subfolders, and files beside them that are clearly no data."""

    images: list[Path]
    folders: list[Path]
    documents: list[Path]


def look_into(folder: Path, besides: Sequence[Path] = ()) -> Found:
    """Return the content of a folder without the files `besides`; raise for files of other kinds."""
    if not folder.is_dir():
        raise FedcsoError(f"{folder} is not a folder: give a folder of images")
    found = Found([], [], [])
    apart = [other.resolve() for other in besides]
    for entry in sorted(folder.iterdir()):
        name = entry.name.lower()
        if entry.resolve() in apart:
            continue
        if name.startswith("."):  # also the shadows of images that some systems write: ._1.png
            found.documents.append(entry)
        elif entry.is_dir():
            found.folders.append(entry)
        elif name.endswith(ENDINGS):
            found.images.append(entry)
        elif name.startswith(DOCUMENTS):
            found.documents.append(entry)
        else:
            raise FedcsoError(
                f"{entry} is not an image: save it as {', '.join(ENDINGS)}, or move it out of the folder {folder}"
            )
    return found


def note_documents(folder: Path, documents: Sequence[Path]) -> list[str]:
    """Return a note on files that were left out."""
    names = [str(path.relative_to(folder)) for path in documents]
    return [f"left out of {folder}, because they are not images: {listed(names)}"] if names else []


def images_by_class(folder: Path, besides: Sequence[Path] = ()) -> tuple[dict[str, list[Path]], list[str]]:
    """Return the images of each class, which is a subfolder, and notes; raise for anything that is out of place."""
    top = look_into(folder, besides)
    if top.images:
        raise FedcsoError(f"{top.images[0]} is not in the folder of a class: make a folder in {folder} for each class")
    if not top.folders:
        raise FedcsoError(f"{folder} is empty: make a folder in it for each class, with the images of the class")
    classes, documents = {}, list(top.documents)
    for place in top.folders:
        inside = look_into(place)
        if inside.folders:
            raise FedcsoError(f"{inside.folders[0]} is a folder inside that of a class: move its images to {place}")
        if not inside.images:
            raise FedcsoError(f"{place} has no images: put the images of the class there, or remove the folder")
        classes[place.name] = inside.images
        documents += inside.documents
    return classes, note_documents(folder, documents)


class ToClassify(NamedTuple):
    """Images to classify, and notes."""

    files: list[Path]
    labels: list[str]
    """The class of each image, if all are in folders with names of classes; otherwise empty."""
    notes: list[str]


def images_to_classify(folder: Path, classes: Collection[str]) -> ToClassify:
    """Return the images in a folder and its subfolders; raise if there are none."""
    top = look_into(folder)
    files, labels, documents = list(top.images), [], list(top.documents)
    for place in top.folders:
        inside = look_into(place)
        if inside.folders:
            raise FedcsoError(f"{inside.folders[0]} is a folder inside a folder: move its images to {place}")
        files += inside.images
        labels += [place.name] * len(inside.images)
        documents += inside.documents
    if not files:
        raise FedcsoError(f"{folder} has no images: put those to classify there")
    notes = note_documents(folder, documents)
    others = [place.name for place in top.folders if place.name not in classes]
    if others and len(others) < len(top.folders):
        notes.append(f"accuracy is not measured: the folder {others[0]!r} in {folder} is not called like a class")
    return ToClassify(files, [] if others or top.images else labels, notes)


def read_images(
    files: Sequence[Path], size: int, channels: str = "auto", inverted: bool = False
) -> tuple[torch.Tensor, ImageForm, list[str]]:
    """Return images as bytes (number, size, size), in colour (number, 3, size, size), with their form and notes.

    With `auto`, the files decide on the channels, and must agree; otherwise all are converted to `channels`. Images
    are reduced by averaging over areas; those that are not square are stretched.
    """
    first: dict[str, Path] = {}
    arrays, stretched, converted = [], 0, 0
    for file in files:
        picture = open_picture(file)
        kind = "grey" if picture.mode == MODES["grey"] else "colour"
        first.setdefault(kind, file)
        if channels == "auto" and len(first) > 1:
            raise FedcsoError(
                f"{first['grey']} is grey and {first['colour']} is in colour: convert them, or choose one for all "
                "images with --channels grey or --channels colour"
            )
        stretched += picture.width != picture.height
        converted += channels not in ("auto", kind)
        arrays.append(_pixels(picture, size, kind if channels == "auto" else channels))
    form = ImageForm(size, next(iter(first)) if channels == "auto" else channels, inverted)  # type: ignore[arg-type]
    notes = [f"{len(files)} images are read in {form.channels}, as {size}×{size} pixels"]
    if converted:
        notes.append(f"{converted} images are converted to {form.channels}")
    if stretched:
        notes.append(f"{stretched} images are not square and are stretched")
    pixels = torch.from_numpy(np.stack(arrays))
    return 255 - pixels if inverted else pixels, form, notes


def _pixels(picture: Any, size: int, channels: str) -> np.ndarray:
    """Return the pixels of a picture, with the channels as the first axis if there are several."""
    from PIL import Image

    small = picture.convert(MODES[channels]).resize((size, size), Image.Resampling.BOX)
    pixels = np.asarray(small)
    return pixels if pixels.ndim == 2 else np.moveaxis(pixels, 2, 0)
