"""Sites with a small table in which the label depends on a product of two columns, so that linear models fail."""

from functools import cache

import numpy as np
import pandas as pd
import pytest
import torch

from fedcso.datasets.examples import Examples
from fedcso.datasets.tables.sites import Sites
from fedcso.fitting import budget, search, train, trees
from fedcso.reports import bootstrap


def search_little(patch: pytest.MonkeyPatch) -> None:
    """Make searches lean and their runs short, however slow the machine is; grow few trees and resample less often."""
    patch.setattr(train, "seconds", lambda units, found: 0.0)
    patch.setattr(budget, "MOST_STEPS", 20)
    patch.setattr(search, "LONGER", 10**9)
    patch.setattr(budget, "THOROUGH", budget.LEAN)
    patch.setattr(trees, "TREES", 20)
    patch.setattr(bootstrap, "MOST_ROWS", 0)


SITES = ("north", "south", "west")


def table(rows: int = 600, seed: int = 0) -> pd.DataFrame:
    """Return rows with about 10 % positives."""
    rng = np.random.default_rng(seed)
    a, b, c = rng.normal(size=(3, rows))
    chance = 1 / (1 + np.exp(-4 * (a * b - 1.2)))
    return pd.DataFrame(
        {
            "a": a.round(4),
            "b": b.round(4),
            "c": c.round(4),
            "kind": rng.choice(["x", "y"], rows),
            "hospital": rng.choice(SITES, rows, p=[0.5, 0.3, 0.2]),
            "ill": (rng.random(rows) < chance).astype(int),
        }
    )


@cache
def small_sites(rows: int = 600) -> Sites:
    """Return the same kind of rows as inputs, split."""
    frame = table(rows)
    parts: dict[str, list[Examples]] = {"train": [], "validation": [], "test": []}
    for name in SITES:
        own = frame[frame["hospital"] == name].sort_values("ill", kind="stable").reset_index(drop=True)
        for part, turns in (("train", (0, 2, 4)), ("validation", (1,)), ("test", (3,))):
            some = own[own.index % 5 == turns[0]] if len(turns) == 1 else own[(own.index % 5).isin(turns)]
            inputs = torch.tensor(some[["a", "b", "c"]].to_numpy(), dtype=torch.float32)
            parts[part].append(Examples(inputs, torch.tensor(some["ill"].to_numpy())))
    return Sites(list(SITES), parts["train"], parts["validation"], parts["test"], [])
