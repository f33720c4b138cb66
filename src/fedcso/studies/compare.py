"""Compare the last evaluations of runs."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from fedcso.core.errors import FedcsoError, InvalidValue, UnknownName
from fedcso.core.intervals import mean_and_interval
from fedcso.core.metric import DeclaredMetrics
from fedcso.reports import figures, notebook
from fedcso.reports.recorded import Record, has, record_of
from fedcso.reports.tables import Estimate, flat, summary
from fedcso.reports.terminal import as_text
from fedcso.runs.folder import RunFolder
from fedcso.studies.results import RunResult


@dataclass(frozen=True)
class Comparison:
    """Several runs side by side. In a notebook it shows its tables and the curves."""

    record: Record
    """The evaluations of all runs."""
    paired: Sequence[dict[str, Any]]
    """The differences as rows, with estimates as values."""

    @property
    def table(self) -> pd.DataFrame:
        """The last evaluation of every method: means over seeds; “±” are half-widths of 95 % intervals."""
        return pd.DataFrame(flat(summary(self.record)))

    @property
    def differences(self) -> pd.DataFrame:
        """The difference of every other method to the baseline, over the seeds that both have."""
        return pd.DataFrame(flat(self.paired))

    @property
    def figure(self) -> figures.Drawing:
        """The learning curves of all methods."""
        return figures.curves(self.record, "comparison")

    def summary(self) -> str:
        """Return both tables as text."""
        return as_text(summary(self.record), "last evaluation") + as_text(self.paired, "paired differences")

    def __str__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        tables = notebook.table(summary(self.record)) + notebook.table(self.paired)
        return tables + notebook.picture(self.figure)


def compare(
    *runs: str | Path | RunResult,
    metric: str | None = None,
    baseline: str | None = None,
    allow_different_data: bool = False,
) -> Comparison:
    """Compare runs: the last evaluation of every method, and differences that are paired by seed.

    This is `fedcso compare` in Python.

    Args:
        runs: run folders, or what `fedcso.run` has returned
        metric: the metric of the differences; by default the most informative one that all runs have
        baseline: the method to compare with; by default the first
        allow_different_data: True to compare runs even if their test data differ
    """
    if not runs:
        raise InvalidValue("runs", [], "one or several run folders")
    folders = [RunFolder.open(run.folder if isinstance(run, RunResult) else Path(run)) for run in runs]
    if not allow_different_data:
        _require_same_data(folders)
    record = _merge(folders)
    return Comparison(record, differences(record, metric, baseline))


def _require_same_data(folders: list[RunFolder]) -> None:
    """Raise unless all runs were tested on the same data; of those that do not tell, all data must be the same."""
    data = {folder.path: folder.environment()["data"] for folder in folders}
    tells = all("test" in value for value in data.values())
    compared = [value["test"] if tells else {**value, "test": None} for value in data.values()]
    if all(value == compared[0] for value in compared):
        return
    listing = "; ".join(f"{path}: {_words(value)}" for path, value in data.items())
    why = "" if tells else ", and not all of them tell their test data"
    raise FedcsoError(
        f"the data of these runs differ{why} ({listing}); to compare them anyway, add --allow-different-data"
    )


def _words(values: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in values.items())


def _merge(folders: list[RunFolder]) -> Record:
    """Return the evaluations of all folders as one record.

    A method that occurs in several folders is labelled with the folder's name, or with its path if names are equal. The
    metrics are declared by the first folder that declares any.
    """
    records = {str(folder.path): record_of(folder) for folder in folders}
    names = {path: Path(path).name for path in records}
    if len(set(names.values())) < len(names):
        names = {path: path for path in records}
    owners: dict[str, set[str]] = {}
    for path, record in records.items():
        for row in record.rows:
            owners.setdefault(row["algorithm"], set()).add(path)

    def label(row: dict[str, Any], path: str) -> str:
        return f"{row['algorithm']} [{names[path]}]" if len(owners[row["algorithm"]]) > 1 else str(row["algorithm"])

    rows = [row | {"algorithm": label(row, path)} for path, record in records.items() for row in record.rows]
    declared = next((record.declared for record in records.values() if record.declared.metrics), DeclaredMetrics())
    return Record(rows, declared)


def differences(record: Record, metric: str | None, baseline: str | None) -> list[dict[str, Any]]:
    """Return a row for every other method: its difference to the baseline, over the seeds that both have."""
    methods = _by_method(record.rows)
    names = [one.name for one in record.metrics()]
    there = [name for name in names if all(any(has(row, name) for row in rows) for rows in methods)]
    if metric is not None and metric not in there:
        raise UnknownName("metric", metric, there)
    if not there:
        raise FedcsoError("these runs have no metric in common: compare runs of the same problem")
    headline = record.declared.headline
    metric = metric or (headline if headline in there else there[0])
    last: dict[str, dict[Any, float]] = {}
    for row in record.rows:
        if has(row, metric):
            last.setdefault(row["algorithm"], {})[row["seed"]] = float(row[metric])
    if baseline is not None and baseline not in last:
        raise UnknownName("baseline", baseline, last)
    base = baseline or next(iter(last))
    table = []
    for name, values in last.items():
        common = sorted(values.keys() & last[base].keys())
        if name == base or not common:
            continue
        mean, half = mean_and_interval([values[seed] - last[base][seed] for seed in common])
        verdict = "one seed" if half != half else "within noise" if abs(mean) <= half else "clear"
        table.append(
            {
                f"{metric}: method − {base}": name,
                "seeds": len(common),
                "difference": Estimate(mean, half),
                "": verdict,
            }
        )
    return table


def _by_method(rows: Sequence[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    methods: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        methods.setdefault(row["algorithm"], []).append(row)
    return list(methods.values())
