"""Load a user's own images for few-shot learning: a folder with one subfolder for each class.

All classes get the number of images of the smallest one; which images of a larger class are kept, is drawn by the seed.
Classes, not images, are split: three fifths are for training and one fifth each for validation and testing, so that
tests use classes that were not trained on. A table (`class_tables`) can decide on the clients and on the parts instead.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch

from fedcso.core.errors import FedcsoError, require_count
from fedcso.datasets.characters import Characters, ClassSource
from fedcso.datasets.class_tables import PARTS, ClassTable, read_class_table
from fedcso.datasets.image_folders import images_by_class, read_images
from fedcso.datasets.tables.table import DEAL


def load_own_classes(
    folder: str | Path, size: int, channels: str = "auto", class_table: str = "", seed: int = 0
) -> ClassSource:
    """Load the images of all classes; raise `FedcsoError`, naming the file or folder, if something is wrong."""
    require_count("data_seed", seed, least=0)
    place, file = Path(folder), Path(class_table)
    files, notes = images_by_class(place, [file] if class_table else [])
    table = read_class_table(file, files, place) if class_table else ClassTable({}, {})
    parts = table.parts or _split(list(files), table.clients, seed)
    names = {part: [name for name in files if parts[name] == part] for part in PARTS}
    for part, some in names.items():
        if not some:
            raise FedcsoError(
                f"{place} has {len(files)} classes, and none of them is for {part}: "
                + (f"change the column 'part' of {file}" if table.parts else "add some, four are the least")
            )
    smallest = min(files, key=lambda name: len(files[name]))
    kept = {name: _choose(images, len(files[smallest]), (seed, 6, n)) for n, (name, images) in enumerate(files.items())}
    ordered = [image for some in names.values() for name in some for image in kept[name]]
    pixels, form, remarks = read_images(ordered, size, channels)
    pixels = pixels.reshape(len(files), -1, *pixels.shape[1:])
    characters = Characters(*torch.split(pixels, [len(some) for some in names.values()]))
    return ClassSource(
        characters,
        form,
        _holders(names["train"], table),
        f"class {smallest!r} of {place}",
        [*notes, *remarks, *_on_numbers(files, smallest), _on_parts(names, bool(table.parts))],
    )


def _split(names: Sequence[str], clients: Mapping[str, str], seed: int) -> dict[str, str]:
    """Return the part of each class: of each five classes of a client in random order three train (see `DEAL`)."""
    order = np.random.default_rng((seed, 5)).permutation(len(names))
    dealt = sorted((names[n] for n in order), key=lambda name: clients.get(name, ""))
    return {name: part for turn, name in enumerate(dealt) for part, turns in DEAL.items() if turn % 5 in turns}


def _choose(images: Sequence[Path], number: int, seed: tuple[int, ...]) -> list[Path]:
    """Return some of a class's images, drawn at random."""
    chosen = np.random.default_rng(seed).permutation(len(images))[:number]
    return [images[n] for n in sorted(chosen)]


def _holders(train: Sequence[str], table: ClassTable) -> dict[str, torch.Tensor]:
    """Return each client's training classes; if the seed has split them, also of clients to whom none is left."""
    held: dict[str, list[int]] = {} if table.parts else {client: [] for client in table.clients.values()}
    for number, name in enumerate(train):
        if name in table.clients:
            held.setdefault(table.clients[name], []).append(number)
    return {client: torch.tensor(held[client], dtype=torch.int64) for client in sorted(held)}


def _on_numbers(files: Mapping[str, Sequence[Path]], smallest: str) -> list[str]:
    """Return a note on the images that are left out, so that all classes have equally many."""
    least, total = len(files[smallest]), sum(map(len, files.values()))
    if total == least * len(files):
        return []
    return [
        f"{total - least * len(files)} of {total} images are left out: {least} are kept of each class, because "
        f"{smallest!r} has no more. To keep more, remove the classes that have few"
    ]


def _on_parts(names: Mapping[str, Sequence[str]], by_table: bool) -> str:
    train, validation, test = (len(some) for some in names.values())
    how = "by the table" if by_table else "three fifths and one fifth each, drawn by data_seed"
    total = train + validation + test
    return f"{total} classes: {train} for training, {validation} for validation, {test} for testing ({how})"
