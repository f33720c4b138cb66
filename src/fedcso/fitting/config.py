"""The configuration of a fit: the data, how long to search, what thresholds should achieve."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

from fedcso.core import user_code
from fedcso.core.errors import FedcsoError, require_count, require_positive
from fedcso.reports.wishes import Wishes

if TYPE_CHECKING:
    from fedcso.datasets.tables.sites import Sites

WISHES = [wish.name for wish in fields(Wishes)]
DATA = ("data", "label", "site", "positive", "drop", "columns", "mirrored", "moved", "data_seed")
"""Fields that are options of `load_sites` of the same name."""


LARGE_PICTURE = 64
"""Pictures with so many pixels on each side are also tried at a lower resolution, which takes far less time."""


@dataclass(frozen=True)
class FitConfig:
    """All that a fit depends on."""

    data: str
    """A .csv, .xlsx, .parquet or .npz file, or a folder with one file for each site."""
    label: str = ""
    """The column that says which rows are positive."""
    site: str = ""
    """The column that says where a row belongs; without it every file is a site."""
    positive: str = ""
    """The labels that count as positive, separated by commas; by default 1, true or yes, or else the rarer one."""
    drop: str = ""
    """Columns to leave out, separated by commas."""
    columns: str = ""
    """The only columns to learn from, separated by commas."""
    minutes: float = 5.0
    """How long to search; more time allows more steps and seeds for large networks."""
    net: str = "auto"
    """The network: linear, mlp, cnn, coarse or your own as path.py:Name; auto tries linear and mlp for tables, and for
    large pictures also coarse."""
    mirrored: bool = False
    """Also train on mirrored images."""
    moved: int = 0
    """Also train on images shifted by up to this many pixels."""
    precision: float | None = None
    """Choose a threshold with at least this share of alerts that are right."""
    recall: float | None = 0.8
    """Choose a threshold with at least this share of positives that are found."""
    alerts: float | None = None
    """Choose a threshold with at most this many alerts in --rows rows."""
    rows: float = 100
    """The rows in which --alerts are counted, for example those of a day."""
    prevalence: float | None = None
    """The share of positives that the model will meet; by default that of the data."""
    seed: int = 0
    """Determines the initial models, the samples and the bootstrap."""
    data_seed: int = 0
    """Determines the split into training, validation and test data."""
    out: str = "runs"
    """Where run folders are created."""
    name: str = "fit"
    """A name for the run folder."""

    def __post_init__(self) -> None:
        require_positive("minutes", self.minutes)
        for name in ("seed", "data_seed", "moved"):
            require_count(name, getattr(self, name), least=0)
        if not self.data:
            raise FedcsoError(
                "the table is missing: name a file or a folder, as in `fedcso fit patients.csv --label y`"
            )

    @classmethod
    def from_flat(cls, values: Mapping[str, Any]) -> "FitConfig":
        """Read the settings of a file; other names in it are ignored."""
        known = {item.name for item in fields(cls)}
        try:
            return cls(**{name: value for name, value in values.items() if name in known})
        except TypeError as error:
            raise FedcsoError(f"the settings of the fit can't be read: {error}") from error

    def flat(self) -> dict[str, Any]:
        """Return the settings as they are saved."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    def wishes(self) -> Wishes:
        """Return what thresholds should achieve."""
        return Wishes(**{name: getattr(self, name) for name in WISHES})

    def load(self) -> "Sites":
        """Read the data; raise unless all parts hold what a search needs."""
        from fedcso.datasets.tables.sites import load_sites  # late: help shows a configuration without importing torch

        sites = load_sites(**{name: getattr(self, name) for name in DATA})
        for part, why in (("train", "learn from"), ("validation", "choose a model by"), ("test", "measure it with")):
            labels = [int(label) for examples in getattr(sites, part) for label in examples.labels.unique()]
            if not {0, 1} <= set(labels):
                kind = "negative" if 0 not in labels else "positive"
                words = {"train": "training"}.get(part, part)
                raise FedcsoError(
                    f"no site has a {kind} {words} row to {why}: three fifths of each site's rows are for training and "
                    "one fifth each for validation and test; collect more rows, or check --positive"
                )
        return sites

    def nets(self, sites: "Sites") -> tuple[str, ...]:
        """Return the networks to try."""
        shape = sites.train[0].inputs.shape[1:]
        if self.net != "auto":
            return (self.net,)
        if len(shape) == 1:
            return "linear", "mlp"
        return ("coarse", "auto") if min(shape[1:]) >= LARGE_PICTURE else ("auto",)

    def sources(self) -> list[user_code.Source]:
        """Return the user's files that the fit depends on."""
        return [user_code.read_source("net", self.net, user_code.HERE)] if user_code.is_own(self.net) else []
