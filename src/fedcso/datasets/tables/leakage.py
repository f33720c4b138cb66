"""Warn of data leakage: columns that nearly determine the label, and copies of rows in several parts.

Only the user knows where the columns come from, so nothing is changed.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import torch

from fedcso.datasets.tables.columns import CATEGORIES, DATES, missing, numbers, texts
from fedcso.datasets.tables.dates import dates
from fedcso.datasets.tables.files import listed

NEARLY = 0.99
"""A column with at least this AUROC, or at most one minus this, nearly determines the label."""

FEWEST = 10
"""With fewer positive or negative rows, a column can determine the label by chance."""

MOST = 10_000
"""The largest number of rows of each label that are examined."""

COMMON = 5
"""Categories with fewer rows are not examined."""

MORE_THAN_CHANCE = 10
"""Equal rows count as copies if there are this many times more pairs of them than expected by chance."""


def telling_columns(train: pd.DataFrame, kinds: Mapping[str, str], labels: np.ndarray) -> list[str]:
    """Return notes on columns that alone nearly determine the label of the training rows."""
    rows = [np.flatnonzero(labels == label) for label in (0, 1)]
    if min(map(len, rows)) < FEWEST:
        return []
    seen = np.concatenate([some[:: -(-len(some) // MOST)] for some in rows])
    truth = labels[seen] == 1
    notes = []
    for name, kind in kinds.items():
        column = train[name].iloc[seen]
        for what, scores in (("alone it ", _scores(column, kind, truth)), ("whether it is missing ", missing(column))):
            rising = _auroc(np.asarray(scores, dtype=np.float64), truth)
            auroc = max(rising, 1 - rising)
            if auroc >= NEARLY:
                notes.append(
                    f"{name}: {what}nearly gives the label (AUROC {auroc:.3f}); leave it out with --drop {name} if it "
                    "is not known when the model is used"
                )
                break
    return notes


def _scores(column: pd.Series, kind: str, truth: np.ndarray) -> np.ndarray:
    """Return a score for each row: the value itself, or the share of positives among rows of the same category."""
    if kind == CATEGORIES:
        codes, _ = pd.factorize(np.array(texts(column), dtype=object), use_na_sentinel=False)
        rows = np.bincount(codes)
        share = np.bincount(codes, weights=truth) / rows
        return np.where(rows < COMMON, truth.mean(), share)[codes]
    values = dates(column).astype(np.float64) if kind == DATES else numbers(column)
    gone = missing(column)
    values[gone] = np.median(values[~gone]) if not gone.all() else 0.0
    return values


def _auroc(scores: np.ndarray, truth: np.ndarray) -> float:
    """Return the share of pairs of a positive and a negative in which the positive has the higher score."""
    positives = int(truth.sum())
    ranks = pd.Series(scores).rank().to_numpy()
    return float((ranks[truth].sum() - positives * (positives + 1) / 2) / (positives * (len(truth) - positives)))


def row_prints(frame: pd.DataFrame, labels: np.ndarray) -> np.ndarray:
    """Return a number for each row, equal for equal rows with equal labels.

    If the columns have so few values that rows are equal by chance, all numbers differ.
    """
    prints: np.ndarray = pd.util.hash_pandas_object(frame, index=False).to_numpy() ^ pd.util.hash_array(labels)
    equal = _equal_pairs(pd.Series(prints))
    if not equal:
        return prints
    pairs = len(prints) * (len(prints) - 1) / 2
    by_chance = pairs * math.prod(_equal_pairs(frame[name]) / pairs for name in frame.columns)
    return prints if equal > MORE_THAN_CHANCE * by_chance else np.arange(len(prints))


def _equal_pairs(values: pd.Series) -> float:
    """Return the number of pairs of rows with the same value."""
    counts = values.value_counts(dropna=False).to_numpy(np.float64)
    return float((counts * (counts - 1) / 2).sum())


def picture_prints(pictures: torch.Tensor, labels: np.ndarray) -> np.ndarray:
    """Return a number for each picture, equal for equal pictures with equal labels."""
    contents = np.empty(len(pictures), dtype=object)
    contents[:] = [picture.numpy().tobytes() for picture in pictures]
    return pd.util.hash_array(contents) ^ pd.util.hash_array(labels)


def copies_across_parts(prints: np.ndarray, parts: Mapping[str, np.ndarray]) -> list[str]:
    """Return a note for each part that contains copies of rows of an earlier part (train, validation, test)."""
    notes, before = [], prints[parts["train"]]
    for part in ("validation", "test"):
        own = prints[parts[part]]
        copies = int(np.isin(own, before).sum())
        if copies:
            notes.append(
                f"{copies} of {len(own)} {part} rows are copies of rows in another part: metrics look better than they "
                "are; remove the copies from the table"
            )
        before = np.concatenate([before, own])
    return notes


def copies_across_sites(prints: np.ndarray, places: np.ndarray, names: Sequence[str]) -> list[str]:
    """Return a note if several sites have copies of the same rows."""
    pairs = pd.DataFrame({"row": prints, "site": places}).drop_duplicates()
    shared = pairs[pairs["row"].duplicated(keep=False)]
    if shared.empty:
        return []
    rows = int(np.isin(prints, shared["row"].unique()).sum())
    sites = listed(names[place] for place in sorted(shared["site"].unique()))
    return [f"{rows} rows are copies of rows at another site ({sites}): does a file hold another site's rows too?"]
