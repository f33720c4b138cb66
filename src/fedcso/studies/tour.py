"""The tour: why one would use this, in a minute and from embedded data. `fedcso.tour` is what `fedcso tour` does."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pandas as pd

from fedcso.experiments.experiment import Runner
from fedcso.experiments.tour_bias import run_bias, tell_bias
from fedcso.experiments.tour_rare import run_rare, tell_rare
from fedcso.experiments.tour_settings import TourSettings, settings
from fedcso.reports import figures, story, tables
from fedcso.reports.story import Section
from fedcso.reports.terminal import as_text
from fedcso.runs.folder import RunFolder

TITLE = "fedcso in a minute"
PARTS = ("bias", "rare")


@dataclass(frozen=True)
class TourResult:
    """A finished tour. In a notebook it shows its sentences, tables and figures."""

    folder: Path
    """The run folder, with report.html, and for each part its rows, table and figure."""

    @cached_property
    def sections(self) -> Sequence[Section]:
        """Both parts: what was done, table, sentence, figure."""
        sizes = _settings(RunFolder(self.folder))
        return [
            tell_bias(json.loads((self.folder / "bias.json").read_text()), sizes.bias),
            tell_rare(json.loads((self.folder / "rare.json").read_text())),
        ]

    @property
    def sentences(self) -> list[str]:
        """What the numbers say, a text for each part."""
        return [section.sentence for section in self.sections]

    @property
    def tables(self) -> dict[str, pd.DataFrame]:
        """The table of each part; “±” are half-widths of 95 % intervals."""
        return {name: pd.DataFrame(tables.flat(one.table)) for name, one in zip(PARTS, self.sections, strict=True)}

    @property
    def figures(self) -> dict[str, figures.Drawing]:
        """The figure of each part."""
        return {name: section.figure for name, section in zip(PARTS, self.sections, strict=True)}

    @property
    def page(self) -> Path:
        """The report, to open in a browser."""
        return self.folder / "report.html"

    def summary(self) -> str:
        """Return the tour as text."""
        told = [f"\n{one.title}\n{one.about}\n\n{as_text(one.table)}\n{one.sentence}\n" for one in self.sections]
        return "\n".join([*told, f"report  {self.page}\nfolder  {self.folder}"])

    def __str__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        return story.fragment(self.sections)


def tour(*, quick: bool = False, seeds: int | None = None, out: str | Path = "runs") -> TourResult:
    """Show what fedcso is for, in about a minute and without downloads: a bias and its remedy, and rare positives.

    Args:
        quick: a smaller version that takes a few seconds; its numbers mean little
        seeds: the number of seeds; 5 by default, 2 for the quick version
        out: where run folders are created
    """
    config = {"command": "tour", "quick": quick} | settings(quick, seeds).flat()
    return resume_tour(RunFolder.create(Path(out), "tour", config, {}))


def resume_tour(folder: RunFolder) -> TourResult:
    """Carry out what is left of a tour, write its page, and return it."""
    sizes = _settings(folder)
    run = Runner(folder, sizes, warns=False)  # that a site alone learns badly is part of the plan
    for name, rows in {
        "bias": run_bias(run, sizes.bias, sizes.seeds),
        "rare": run_rare(run, sizes.rare, sizes.seeds),
    }.items():
        folder.write(f"{name}.json", json.dumps(rows))
    found = TourResult(folder.path)
    for name, section in zip(PARTS, found.sections, strict=True):
        folder.write(f"{name}.csv", tables.as_csv(tables.flat(section.table)))
        for kind in ("png", "pdf"):
            folder.write(f"{name}.{kind}", figures.render(section.figure, kind))
    folder.write("report.html", story.page(TITLE, found.sections, folder.config(), folder.environment()))
    folder.mark("done")
    return found


def _settings(folder: RunFolder) -> TourSettings:
    config = folder.config()
    return settings(bool(config["quick"])).updated(config)
