"""Load a user's own table, whose rows have a label and a site: encode and split the rows of each site.

Three fifths of each site's rows are for training and one fifth each for validation and test, with nearly the same share
of positives. The constants of the encoding (see `prepare`) come from the training rows of all sites together.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from fedcso.core.errors import require_count
from fedcso.datasets.examples import Examples
from fedcso.datasets.tables.columns import kind
from fedcso.datasets.tables.encoders import Preparation
from fedcso.datasets.tables.files import listed
from fedcso.datasets.tables.inputs import ColumnInputs, Inputs, PictureInputs
from fedcso.datasets.tables.labels import binary_labels
from fedcso.datasets.tables.leakage import copies_across_parts, copies_across_sites, telling_columns
from fedcso.datasets.tables.prepare import prepare
from fedcso.datasets.tables.read import TableRows, read
from fedcso.datasets.tables.roles import Roles, names_of

DEAL = {"train": (0, 2, 4), "validation": (3,), "test": (1,)}
"""Which of each five rows go to each part; the first go to training, so a site's only positive does."""


class Table(NamedTuple):
    """The examples of each site, with label 1 for positives; small sites may have no validation or test rows."""

    sites: list[str]
    columns: list[str]
    """The names of the inputs' columns; none for pictures."""
    train: list[Examples]
    validation: list[Examples]
    test: list[Examples]
    preparation: Preparation | None
    """Encodes new rows in the same way; None for pictures."""
    notes: list[str]
    """Notes for the user on decisions that were made automatically."""


def load_table(
    path: str | Path | Sequence[str | Path],
    label: str,
    site: str | None = None,
    positive: object = None,
    seed: int = 0,
    drop: str | Sequence[str] = (),
    columns: str | Sequence[str] = (),
) -> Table:
    """Load a table from one or several files.

    `label` and `site` are names of columns. Without `site`, `path` is a folder, a pattern or a list of files, and each
    file is a site. `positive` is the positive label, or several separated by commas; all others are negative. It can
    be omitted if there are only two labels: then 1, true or yes is positive, or else the rarer label. `seed` determines
    the split. `drop` lists columns to leave out, `columns` the only ones to learn from.
    """
    require_count("seed", seed, least=0)
    roles = Roles(label, site or "", names_of(drop), names_of(columns))
    rows = read(path, roles)
    labels, notes = binary_labels(rows.labels, label, positive)
    sites = _ordered(rows.sites)
    places = _places(rows.sites, sites)
    held = np.split(np.argsort(places, kind="stable"), np.cumsum(np.bincount(places))[:-1])
    splits = [split_rows(share, labels, (seed, 3, number)) for number, share in enumerate(held)]
    parts = {part: np.concatenate([split[part] for split in splits]) for part in DEAL}
    inputs, remarks = _inputs(rows, labels, parts["train"], places, roles)
    prints = inputs.prints(rows, labels)

    def shares(part: str) -> list[Examples]:
        return [Examples(inputs.of(rows, split[part]), torch.from_numpy(labels[split[part]])) for split in splits]

    return Table(
        sites,
        inputs.names,
        shares("train"),
        shares("validation"),
        shares("test"),
        inputs.preparation,
        [
            *rows.notes,
            *notes,
            *_on_sites(sites, held, splits, labels),
            *remarks,
            *copies_across_parts(prints, parts),
            *copies_across_sites(prints, places, sites),
        ],
    )


def _inputs(
    rows: TableRows, labels: np.ndarray, train: np.ndarray, places: np.ndarray, roles: Roles
) -> tuple[Inputs, list[str]]:
    """Return how rows become inputs, with constants from the training rows, and notes."""
    if rows.pictures is not None:
        return PictureInputs(tuple(rows.pictures.shape[1:])), []
    features = rows.features.iloc[train]
    kinds = {name: kind(rows.features[name]) for name in features.columns}
    preparation, notes = prepare(features, kinds, places[train], roles.columns)
    used = {encoder.name: kinds[encoder.name] for encoder in preparation.encoders}
    return ColumnInputs(preparation), notes + telling_columns(features, used, labels[train])


def _on_sites(
    sites: Sequence[str], held: Sequence[np.ndarray], splits: Sequence[dict[str, np.ndarray]], labels: np.ndarray
) -> list[str]:
    """Return notes on sites without positives or test rows, and on metrics that are therefore undefined."""
    notes = []
    if len(sites) == 1:
        notes.append(f"all rows are at one site, {sites[0]!r}: this is training in one place, not federated")
    negative = [name for name, share in zip(sites, held, strict=True) if not labels[share].any()]
    if negative:
        notes.append(f"{listed(negative)}: no positive label")
    untested = [
        name
        for name, share, split in zip(sites, held, splits, strict=True)
        if labels[share].any() and not labels[split["test"]].any()
    ]
    if untested:
        notes.append(f"{listed(untested)}: no positive test row, so that the site's own average precision is undefined")
    for part, so_that in (
        ("validation", "the last model of a run is the chosen one"),
        ("test", "no result is measured"),
    ):
        if not any(labels[split[part]].any() for split in splits):
            notes.append(f"no site has a positive {part} row: average precision is undefined there, and {so_that}")
    return notes


def _ordered(names: Sequence[str]) -> list[str]:
    """Return the distinct names, sorted as numbers if all are numbers."""
    distinct = sorted(set(names))
    return sorted(distinct, key=int) if all(name.isdecimal() for name in distinct) else distinct


def _places(names: Sequence[str], sites: Sequence[str]) -> np.ndarray:
    """Return the number of each row's site."""
    number = {name: place for place, name in enumerate(sites)}
    return np.array([number[name] for name in names])


def split_rows(rows: np.ndarray, labels: np.ndarray, seed: tuple[int, ...]) -> dict[str, np.ndarray]:
    """Deal a site's rows to the parts: positives first, then negatives, each shuffled; parts are sorted by row."""
    rng = np.random.default_rng(seed)
    shuffled = rng.permutation(rows)
    dealt = np.concatenate([shuffled[labels[shuffled] == value] for value in (1, 0)])
    turn = np.arange(len(rows)) % 5
    return {part: np.sort(dealt[np.isin(turn, turns)]) for part, turns in DEAL.items()}
