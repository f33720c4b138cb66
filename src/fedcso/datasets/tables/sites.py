"""Data with rare positives at several sites: built-in data, made imbalanced and partitioned, or a user's own table."""

from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import torch

from fedcso.core.errors import InvalidValue, UnknownName, require_count
from fedcso.datasets import DATASETS, IMAGES, load, load_images
from fedcso.datasets.examples import Examples
from fedcso.datasets.imbalance import binarise, thin_positives
from fedcso.datasets.partition import partition, pathological, train_validation_test
from fedcso.datasets.rows import share
from fedcso.datasets.versions import Variation

if TYPE_CHECKING:  # pandas takes long to load
    from fedcso.datasets.tables.encoders import Preparation

TEN_CLASSES = "5,6,7,8,9"
"""The positive classes of the paper."""


class Sites(NamedTuple):
    """The examples of each site, with label 1 for positives; inputs are float rows or uint8 pictures."""

    names: list[str]
    train: list[Examples]
    validation: list[Examples]
    test: list[Examples]
    notes: list[str]
    """Notes for the user on how the data were prepared."""
    preparation: "Preparation | None" = None
    """Encodes new rows of a table in the same way."""
    positive_rate: float | None = None
    """The share of positives over all sites, if this object does not hold all of them."""
    variation: Variation = Variation()
    """The versions of pictures that are used for training."""
    weights: Literal["uniform", "size"] = "uniform"
    """How much sites count in averages, unless the plan says otherwise."""


def load_sites(
    data: str = "digits",
    label: str = "",
    site: str = "",
    positive: str = "",
    clients: int = 16,
    alpha: float = 0.0,
    classes: int = 0,
    removed: float = 0.8,
    mirrored: bool = False,
    moved: int = 0,
    data_seed: int = 0,
    agreement: str = "",
    drop: str = "",
    columns: str = "",
) -> Sites:
    """Sites with rare positives.

    Args:
        data: a name (see: fedcso list datasets), your own .csv, .xlsx, .parquet or .npz file, or a folder of such files
        label: in your own data, the column that says which rows are positive
        site: in your own data, the column that names the site of a row; without it every file is a site
        positive: the labels that count as positive, separated by commas; 5,6,7,8,9 where there are ten classes
        clients: for built-in data, the number of sites that they are divided among
        alpha: for built-in data, Dirichlet concentration of the classes; sites differ more if it is small, 0 means IID
        classes: for built-in data, the number of classes at each site, 0 for all (fewer are a pathological split)
        removed: for built-in data, the share of the training positives that is left out
        mirrored: for pictures, also train on mirrored ones
        moved: for pictures, also train on ones shifted by up to this many pixels
        data_seed: determines the splits, and which site has which data
        agreement: in a federation of real sites, the file with what they agreed on; data is then one site's own table
        drop: in your own data, columns to leave out, separated by commas
        columns: in your own data, the only columns to learn from, separated by commas
    """
    require_count("moved", moved, least=0)
    if agreement:
        from fedcso.datasets.tables.agree import agreed_sites

        sites = agreed_sites(data, label, positive, agreement, data_seed, drop, columns)
    elif data in DATASETS or data in IMAGES:
        sites = _built_in(data, positive, clients, alpha, classes, removed, data_seed)
    else:
        sites = _own_table(data, label, site, positive, drop, columns, data_seed)
    for name, value in (("mirrored", mirrored), ("moved", moved)):
        if value and len(sites.train[0].inputs.shape) != 4:
            raise InvalidValue(name, value, f"left out for data other than pictures ({', '.join(IMAGES)} or your own)")
    return sites._replace(variation=Variation(mirrored, moved))


def _own_table(data: str, label: str, site: str, positive: str, drop: str, columns: str, seed: int) -> Sites:
    if not Path(data).suffix and not Path(data).exists():
        raise UnknownName("data", data, [*DATASETS, *IMAGES, "FILE.csv", "FILE.parquet", "FILE.npz", "FOLDER"])
    from fedcso.datasets.tables.table import load_table

    table = load_table(data, label, site or None, positive or None, seed, drop, columns)
    return Sites(table.sites, table.train, table.validation, table.test, table.notes, table.preparation, weights="size")


def _built_in(data: str, positive: str, clients: int, alpha: float, classes: int, removed: float, seed: int) -> Sites:
    """Partition all examples together, so that a site's test data are distributed like its training data."""
    inputs, labels, parts = _splits(data, seed)
    chosen = positive or (TEN_CLASSES if len(torch.unique(labels)) == 10 else "1")
    try:
        values = [int(value) for value in chosen.split(",")]
    except ValueError:
        raise InvalidValue("positive", positive, "labels (whole numbers) separated by commas") from None
    binary = binarise(labels, values)
    train = parts["train"][thin_positives(binary[parts["train"]], removed, seed)]
    parts = parts | {"train": train}
    if inputs.dtype != torch.uint8:  # measurements are scaled by constants from the training part
        mean, std = inputs[train].mean(0), inputs[train].std(0).clamp_min(1e-6)
        inputs = (inputs - mean) / std
    everything = torch.cat(list(parts.values()))
    if classes:
        shares = pathological(labels[everything], clients, classes, seed)
    else:
        shares = partition(labels[everything], clients, alpha, seed)
    held = {
        name: [Examples(inputs[own], binary[own]) for own in _cut(everything, shares, part)]
        for name, part in parts.items()
        if name != "train"
    }
    whole = Examples(inputs, binary)
    held["train"] = [share(whole, own) for own in _cut(everything, shares, parts["train"])]
    count, total = int(binary[train].sum()), len(train)
    notes = [f"{data}: {count:,} of {total:,} training examples are positive ({count / total:.1%})"]
    return Sites([str(n) for n in range(clients)], held["train"], held["validation"], held["test"], notes)


def _splits(data: str, seed: int) -> tuple[torch.Tensor, torch.Tensor, dict[str, torch.Tensor]]:
    """Return inputs, labels, and the indices of each part; pictures keep their published test set."""
    if data in DATASETS:
        examples = load(data)
        split = train_validation_test(len(examples.labels), seed)
        return *examples, dict(zip(("train", "validation", "test"), split, strict=True))
    train, test = load_images(data)
    number = len(train.labels)
    order = torch.randperm(number, generator=torch.Generator().manual_seed(seed))
    parts = {"train": order[: number * 9 // 10], "validation": order[number * 9 // 10 :]}
    parts["test"] = torch.arange(number, number + len(test.labels))
    return torch.cat([train.inputs, test.inputs]), torch.cat([train.labels, test.labels]), parts


def _cut(everything: torch.Tensor, shares: list[torch.Tensor], part: torch.Tensor) -> list[torch.Tensor]:
    """Return the examples of each site that belong to a part."""
    belongs = torch.zeros(int(everything.max()) + 1, dtype=torch.bool)
    belongs[part] = True
    return [own[belongs[own]] for own in (everything[share] for share in shares)]
