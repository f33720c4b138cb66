"""Fit a large table: how long it takes, how much memory it needs, and how good the model is.

    python -m benchmarks.large_table [--rows 1000000] [--columns 200] [--minutes 5]

The table is made up: ten sites of different sizes, about 2 % positives. Of the columns a tenth tell something of the
label, half of these in a way that a linear model can't use; every tenth column is text, every seventh has gaps, and the
others are noise. It is written as Parquet, and then fitted as with `fedcso fit`.
"""

import argparse
import resource
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.results import save
from benchmarks.timing import describe_machine
from fedcso.fitting.config import FitConfig
from fedcso.fitting.pipeline import begin, carry_out

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
    frame = {}
    for number in range(columns):
        column = values[:, number]
        if number % 10 == 9:
            frame[f"word{number}"] = pd.Categorical.from_codes(
                np.clip((column * 2 + WORDS / 2).astype(int), 0, WORDS - 1), [f"w{n}" for n in range(WORDS)]
            )
            continue
        if number % 7 == 6:
            column[rng.random(rows) < 0.1] = np.nan
        frame[f"x{number}"] = column
    sizes = np.arange(1, SITES + 1) / sum(range(1, SITES + 1))
    frame[SITE] = rng.choice([f"site{n}" for n in range(SITES)], rows, p=sizes)
    frame[LABEL] = ill.astype(np.int8)
    return pd.DataFrame(frame)


STAGES = {"search": "", "comparison": "training on pooled data", "page and model": "calibrating"}
"""The stages of a fit after reading, and how the line begins that it says at their beginning."""


def measure(table: Path, minutes: float, out: Path) -> dict[str, Any]:
    """Fit the table; return the seconds of each stage, the peak memory and the test results."""
    config = FitConfig(str(table), LABEL, SITE, minutes=minutes, out=str(out))
    began = time.perf_counter()
    sites = config.load()
    begins = {"reading": began, "search": time.perf_counter()}

    def say(line: str) -> None:
        print(f"{time.perf_counter() - began:7.0f} s   {line}", flush=True)
        for stage, words in STAGES.items():
            if words and line.startswith(words):
                begins[stage] = time.perf_counter()

    fitted = carry_out(begin(config, sites), config, sites, say)
    ends = [*list(begins.values())[1:], time.perf_counter()]
    print(fitted.summary())
    return {
        "inputs": sites.train[0].inputs.shape[1],
        "positives": sum(int(part.labels.sum()) for part in sites.train),
        "seconds": {stage: end - start for (stage, start), end in zip(begins.items(), ends, strict=True)},
        "peak_bytes": 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
        "settings": dict(fitted.decision.settings),
        "notes": [note for note in fitted.decision.notes if "--minutes" in note],
        "contenders": [
            {"name": one.name, "average_precision": asdict(one.average_precision), "note": one.note}
            for one in fitted.decision.contenders
        ],
    }


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
        result = fresh.submit(measure, table, options.minutes, Path(folder)).result()
    print(f"\n{options.rows:,} rows × {options.columns} columns, {result['inputs']} inputs")
    print(", ".join(f"{stage} {seconds:.0f} s" for stage, seconds in result["seconds"].items()))
    print(f"peak memory {result['peak_bytes'] / 1e9:.1f} GB")
    save("large_table", rows=options.rows, columns=options.columns, minutes=options.minutes, **result)


if __name__ == "__main__":
    main()
