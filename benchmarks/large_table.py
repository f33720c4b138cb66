"""Fit a large table: how long it takes, how much memory it needs, and how good the model is.

    python -m benchmarks.large_table [--rows 1000000] [--columns 200] [--minutes 5]

The table is made up: ten sites of different sizes, about 2 % positives. Of the columns a tenth tell something of the
label, half of these in a way that a linear model can't use; every tenth column is text, every seventh has gaps, and the
others are noise. It is written as Parquet, and then fitted as with `fedcso fit`.
"""

import argparse
import resource
import tempfile
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.fits import measure_fit, print_fit
from benchmarks.results import save
from benchmarks.timing import describe_machine
from fedcso.fitting.config import FitConfig

SITES, WORDS, POSITIVE = 10, 12, 0.02
LABEL, SITE = "ill", "hospital"


def make_table(rows: int, columns: int, seed: int = 0) -> pd.DataFrame:
    """Return a table with rare positives."""
    rng = np.random.default_rng(seed)
    values = rng.standard_normal((rows, columns), dtype=np.float32)
    useful = max(4, columns // 10 // 4 * 4)
    straight, first, second = np.split(values[:, :useful], [useful // 2, useful * 3 // 4], axis=1)
    chance = straight @ rng.normal(1.0, 0.3, straight.shape[1]) + (first * second).sum(1)
    chance = chance / chance.std() + rng.normal(0, 0.5, rows)
    ill = chance > np.quantile(chance, 1 - POSITIVE)
    words = np.array([f"w{number}" for number in range(WORDS)])
    frame: dict[str, Any] = {}
    for number in range(columns):
        column = values[:, number]
        if number % 10 == 9:
            places = np.clip((column * 2 + WORDS / 2).astype(int), 0, WORDS - 1)
            frame[f"word{number}"] = pd.Categorical(words[places])
            continue
        if number % 7 == 6:
            column[rng.random(rows) < 0.1] = np.nan
        frame[f"x{number}"] = column
    sizes = np.arange(1, SITES + 1) / sum(range(1, SITES + 1))
    frame[SITE] = rng.choice([f"site{n}" for n in range(SITES)], rows, p=sizes)
    frame[LABEL] = ill.astype(np.int8)
    return pd.DataFrame(frame)


def measure(table: Path, minutes: float) -> dict[str, Any]:
    """Fit the table in this process, and measure also its peak memory."""
    result = measure_fit(FitConfig(str(table), LABEL, SITE, minutes=minutes, out=str(table.parent)))
    return result | {"peak_bytes": 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}


def main() -> None:
    """Make the table, and fit it in a new process, whose peak memory is that of the fit."""
    parser = argparse.ArgumentParser(description=str(__doc__))
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=200)
    parser.add_argument("--minutes", type=float, default=5.0)
    options = parser.parse_args()
    describe_machine()
    with tempfile.TemporaryDirectory() as folder, ProcessPoolExecutor(1, get_context("spawn")) as fresh:
        table = Path(folder) / "table.parquet"
        make_table(options.rows, options.columns).to_parquet(table)
        result = fresh.submit(measure, table, options.minutes).result()
    print(f"\n{options.rows:,} rows × {options.columns} columns, {result['inputs'][0]} inputs")
    print_fit(result)
    print(f"peak memory {result['peak_bytes'] / 1e9:.1f} GB")
    save("large_table", rows=options.rows, columns=options.columns, **result)


if __name__ == "__main__":
    main()
