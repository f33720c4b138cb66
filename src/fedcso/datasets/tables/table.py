"""A user's own table: rows with a label and a site, split and made into numbers, one share a site.

Three fifths of each site's rows are for training and one fifth each for validation and test, with the same share of
positives as far as that goes. All that is learnt from data on the way (see `preparation`) is learnt from the training
rows, of all sites together.
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from fedcso.core.errors import FedcsoError, InvalidValue, require_count
from fedcso.datasets.examples import Examples
from fedcso.datasets.tables.columns import kind, text
from fedcso.datasets.tables.prepare import Preparation, prepare
from fedcso.datasets.tables.read import read

TRUTH = ({"0", "1"}, {"false", "true"})
"""Labels that say by themselves which is positive."""

DEAL = {"train": (0, 2, 4), "validation": (3,), "test": (1,)}
"""Which of each five rows go where; from the left, so that who has only one positive can train with it."""


class Table(NamedTuple):
    """Each site's rows as numbers, with label 1 for positive; a small site may have none to validate or test with."""

    sites: list[str]
    columns: list[str]
    train: list[Examples]
    validation: list[Examples]
    test: list[Examples]
    preparation: Preparation
    """Makes the same numbers of new rows."""
    notes: list[str]
    """What was decided on the way and a user should know."""


def load_table(
    path: str | Path | Sequence[str | Path],
    label: str,
    site: str | None = None,
    positive: object = None,
    seed: int = 0,
) -> Table:
    """The table in a .csv, .csv.gz, .parquet or .npz file, or in several.

    `label` and `site` are columns. Without `site`, `path` is a folder, a pattern or a list, and each file a site
    by its name. `positive` is the label of interest, or several separated by commas; all others are negative. It
    may be left out where labels have two values: 1 or true is positive, otherwise the rarer value. `seed` decides
    the split.
    """
    require_count("seed", seed, least=0)
    rows = read(path, label, site)
    sites = _ordered(rows.sites)
    if len(sites) < 2:
        raise FedcsoError(f"column {site!r} names only one site, {sites[0]!r}; there must be two at least")
    labels, notes = _binary(rows.labels, label, positive)
    kinds = {name: kind(rows.features[name]) for name in rows.features.columns}
    held = _held(rows.sites, sites)
    notes += [f"{name}: no positive label" for name, share in zip(sites, held, strict=True) if not labels[share].any()]
    splits = [split_rows(share, labels, (seed, 3, number)) for number, share in enumerate(held)]
    train = np.concatenate([split["train"] for split in splits])
    preparation, remarks = prepare(rows.features.iloc[train], kinds)

    def shares(part: str) -> list[Examples]:
        chosen = [split[part] for split in splits]
        return [
            Examples(preparation.apply(rows.features.iloc[share]), torch.from_numpy(labels[share])) for share in chosen
        ]

    return Table(
        sites,
        preparation.names,
        shares("train"),
        shares("validation"),
        shares("test"),
        preparation,
        [*rows.notes, *notes, *remarks],
    )


def _ordered(names: Sequence[str]) -> list[str]:
    """Each once; by number if all are numbers."""
    distinct = sorted(set(names))
    return sorted(distinct, key=int) if all(name.isdecimal() for name in distinct) else distinct


def _held(names: Sequence[str], sites: Sequence[str]) -> list[np.ndarray]:
    """The rows of each site."""
    number = {name: place for place, name in enumerate(sites)}
    places = np.array([number[name] for name in names])
    return np.split(np.argsort(places, kind="stable"), np.cumsum(np.bincount(places))[:-1])


def _binary(values: Sequence[str], column: str, positive: object) -> tuple[np.ndarray, list[str]]:
    """Labels as 0 and 1, and a note if it was decided here which is which."""
    counts = Counter(values)
    if len(counts) < 2:
        raise FedcsoError(f"column {column!r} holds only {values[0]!r}; there must be positive and negative labels")
    notes: list[str] = []
    if positive is not None:
        chosen = _chosen(positive, counts)
    elif {value.lower() for value in counts} in TRUTH:
        chosen = {value for value in counts if value.lower() in ("1", "true")}
    else:
        chosen = {_rarer(column, counts)}
        notes = [f"{column}: {min(chosen)!r} was taken for positive because it is rarer; `positive` can say otherwise"]
    return np.array([value in chosen for value in values], dtype=np.int64), notes


def _rarer(column: str, counts: Counter[str]) -> str:
    """The rarer of two labels; among more, or where none is rarer, nothing is guessed."""
    (_, most), *_, (rarest, least) = counts.most_common()
    if len(counts) > 2 or most == least:
        why = "all as frequent" if len(counts) == 2 else "more than two"
        raise FedcsoError(
            f"column {column!r} has {len(counts)} values ({_some(counts)}), {why}; "
            "say by `positive` which is positive, or which are, with commas between"
        )
    return rarest


def _chosen(positive: object, counts: Counter[str]) -> set[str]:
    """One label, or several with commas between."""
    name = str(text(positive))
    chosen = {name} if name in counts else {part.strip() for part in name.split(",")}
    if not chosen < counts.keys():
        raise InvalidValue("positive", positive, f"some, not all, of the labels there are: {_some(counts)}")
    return chosen


def _some(counts: Counter[str]) -> str:
    """The most frequent values, up to five."""
    return ", ".join(repr(value) for value, _ in counts.most_common(5)) + (", …" if len(counts) > 5 else "")


def split_rows(rows: np.ndarray, labels: np.ndarray, seed: tuple[int, ...]) -> dict[str, np.ndarray]:
    """A site's rows dealt out: positives first, then negatives, each shuffled; what is dealt stays in its order."""
    rng = np.random.default_rng(seed)
    shuffled = rng.permutation(rows)
    dealt = np.concatenate([shuffled[labels[shuffled] == value] for value in (1, 0)])
    turn = np.arange(len(rows)) % 5
    return {part: np.sort(dealt[np.isin(turn, turns)]) for part, turns in DEAL.items()}
