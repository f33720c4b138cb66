"""`fedcso.fit`: what `fedcso fit` does, from Python."""

import hashlib
import os
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pandas as pd

from fedcso.core import atomic
from fedcso.core.errors import UnknownName
from fedcso.fitting.config import FitConfig
from fedcso.fitting.fitted import Fitted
from fedcso.fitting.pipeline import begin, carry_out, require_same_data
from fedcso.runs.folder import RunFolder

ROWS = 10_000
"""Rows of a DataFrame that are written at a time."""


def fit(
    table: pd.DataFrame | str | Path, label: str, site: str = "", *, say: Callable[[str], None] = print, **options: Any
) -> Fitted:
    """Find the best model for rare positives at several sites; see `fedcso fit --help`.

    Args:
        table: a DataFrame, or the path of a file or folder. A DataFrame is written to a CSV file in the folder of
            runs, so that the fit can be resumed
        label: the column that says which rows are positive
        site: the column that names the site of each row; a folder with one file for each site needs none
        say: called with lines about the progress; `lambda line: None` for silence
        options: the fields of `fedcso.fitting.config.FitConfig`: minutes, net, precision, recall, seed, out, …
    """
    known = [item.name for item in fields(FitConfig)]
    for name in options:
        if name not in known:
            raise UnknownName("option", name, known)
    config = FitConfig(_as_file(table, options.get("out", FitConfig.out)), label, site, **options)
    sites = config.load()
    for note in sites.notes:
        say(f"note    {note}")
    return carry_out(begin(config, sites), config, sites, say)


def resume_fit(folder: str | Path, say: Callable[[str], None] = print) -> Fitted:
    """Do what is left of a fit, and return its result; of a finished one nothing is computed again but the page."""
    opened = RunFolder.open(Path(folder))
    opened.require_same_sources()
    config = FitConfig.from_flat(opened.config())
    sites = config.load()
    require_same_data(opened, config, sites)
    return carry_out(opened, config, sites, say)


def _as_file(table: pd.DataFrame | str | Path, out: str) -> str:
    if not isinstance(table, pd.DataFrame):
        return str(table)
    digest = hashlib.sha256()

    def pieces() -> Iterator[bytes]:
        for start in range(0, max(len(table), 1), ROWS):  # as a whole, the text of a large table takes much memory
            piece = table.iloc[start : start + ROWS].to_csv(index=False, header=start == 0).encode()
            digest.update(piece)
            yield piece

    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    unnamed = folder / f"table-of-process-{os.getpid()}.csv"
    atomic.write(unnamed, pieces())
    return str(unnamed.replace(folder / f"table-{digest.hexdigest()[:12]}.csv"))
