"""The results of runs in Python: tables, figures and models, read from the run folder; a notebook shows them."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import pandas as pd
import torch
import yaml
from safetensors.torch import load_file

from fedcso.core.errors import FedcsoError, UnknownName, is_number
from fedcso.reports import notebook, outputs, tables
from fedcso.reports.figures import Drawing
from fedcso.reports.recorded import Record, record_of
from fedcso.reports.terminal import as_text
from fedcso.runs.folder import RunFolder
from fedcso.runs.tables import table_in
from fedcso.studies.folders import open_run


@dataclass(frozen=True)
class RunResult:
    """A run: what its folder holds. In a notebook it shows its table and its curves."""

    folder: Path
    """The run folder, with all files of the run."""

    @classmethod
    def open(cls, folder: str | Path) -> Self:
        """Open the folder of a run; raise if it is another folder, or has no results yet."""
        found = cls(open_run(folder).path)
        _ = found.record  # raises if there are no results
        return found

    @property
    def status(self) -> str:
        """`done`, `failed` (some runs broke off), `interrupted`, or `running` (also after a crash)."""
        return self._opened.status

    @property
    def config(self) -> dict[str, Any]:
        """The complete configuration."""
        return self._opened.config()

    @property
    def title(self) -> str:
        """The problem and the number of clients."""
        return outputs.title_of(self._opened)

    @cached_property
    def record(self) -> Record:
        """All evaluations with the declared metrics."""
        return record_of(self._opened)

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The table of results, with estimates (mean and half-width) as its values."""
        ended = self.status in ("done", "failed")
        return tables.results(self.record, self.config.get("rounds") if ended else None)

    @property
    def table(self) -> pd.DataFrame:
        """One row per method and iterate (last, best, random): means over seeds, and half-widths of intervals (±)."""
        return pd.DataFrame(tables.flat(self.rows))

    @property
    def metrics(self) -> pd.DataFrame:
        """One row per evaluation: method, seed, round, all metrics and costs."""
        return pd.DataFrame(self.record.rows)

    @property
    def clients(self) -> pd.DataFrame:
        """One row per run and client."""
        return pd.DataFrame(self.record.clients)

    @property
    def notes(self) -> list[str]:
        """What was noticed in the data and settings."""
        return outputs.notes_in(self._opened)

    @property
    def figures(self) -> dict[str, Drawing]:
        """The figures by name: `curves`, and for rankings `precision-recall`."""
        return {name: figure for name, (figure, _) in outputs.draw(self.record, self.title).items()}

    @property
    def figure(self) -> Drawing:
        """The learning curves."""
        return self.figures["curves"]

    @property
    def page(self) -> Path:
        """The report, to open in a browser."""
        return self.folder / "report.html"

    def model(self, method: str | None = None, seed: int | None = None, which: str = "best") -> dict[str, torch.Tensor]:
        """Return the weights of a model by name: of the first method and seed unless others are named.

        `which` is `best` (chosen on validation data), `final` or `random`.
        """
        path = self.folder / f"model-{which}.safetensors"
        if which not in outputs.MODELS:
            raise UnknownName("model", which, outputs.MODELS)
        if not path.is_file():
            raise FedcsoError(f"{self.folder} has no models yet; go on with fedcso.resume({str(self.folder)!r})")
        runs = list(dict.fromkeys((str(row["algorithm"]), int(row["seed"])) for row in self.record.rows))
        names = list(dict.fromkeys(name for name, _ in runs))
        method = names[0] if method is None else method
        if method not in names:
            raise UnknownName("method", method, names)
        seeds = [number for name, number in runs if name == method]
        seed = seeds[0] if seed is None else seed
        if seed not in seeds:
            raise UnknownName("seed", str(seed), map(str, seeds))
        prefix = f"{method}/{seed}/"
        return {key.removeprefix(prefix): value for key, value in load_file(path).items() if key.startswith(prefix)}

    def summary(self) -> str:
        """Return the results as text."""
        where = [f"{what}  {self.folder / file}" for what, file in {"report": "report.html", "folder": ""}.items()]
        return "\n".join([as_text(self.rows, f"{self.title} ({self.status})"), *where])

    def __str__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        notes = [*self.notes, *([] if self.status == "done" else [f"the run is {self.status}"])]
        parts = [notebook.heading(self.title), notebook.paragraphs(notes), *self._more_html()]
        return "".join([*parts, notebook.table(self.rows), notebook.picture(self.figure), notebook.link(self.page)])

    def _more_html(self) -> list[str]:
        return []

    @property
    def _opened(self) -> RunFolder:
        return RunFolder(self.folder)


@dataclass(frozen=True)
class TuningResult(RunResult):
    """A sweep: the settings that were tried, the chosen ones, and the runs of these with other seeds on test data."""

    @property
    def trials(self) -> pd.DataFrame:
        """Every setting with its value on validation data, the best of each method first."""
        return pd.DataFrame(table_in(self.folder / "sweep.csv"))

    @property
    def tried(self) -> list[dict[str, Any]]:
        """The same as rows, with estimates as values and settings as text."""
        return [_with_estimates(row) for row in table_in(self.folder / "sweep.csv")]

    @property
    def chosen(self) -> list[str]:
        """The chosen setting of each method, as it is written for a run; none if nothing is chosen yet."""
        path = self.folder / "chosen.yaml"
        return list(yaml.safe_load(path.read_text())["algorithm"]) if path.is_file() else []

    def _more_html(self) -> list[str]:
        return [notebook.table(self.tried), notebook.paragraphs(["Chosen settings, with other seeds, on test data:"])]


def _with_estimates(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row of a table whose estimates were written as two columns, with one column for each."""
    widths = {name for name in row if name.endswith(" ±")}
    shown = {name: f"{value:g}" if is_number(value) else value for name, value in row.items() if name not in widths}
    for name in (width.removesuffix(" ±") for width in widths):
        if is_number(row[name]):
            shown[name] = tables.Estimate(row[name], float(row[f"{name} ±"]))
    return shown
