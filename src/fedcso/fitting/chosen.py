"""The settings that a finished fit has chosen, for a federation whose sites hold their own tables."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedcso.core.errors import FedcsoError
from fedcso.fitting.config import FitConfig
from fedcso.reports.wishes import Wishes
from fedcso.runs.folder import RunFolder, read_yaml
from fedcso.runs.methods import MethodSpec
from fedcso.runs.specs import spell

FILE = "chosen.yaml"
"""Settings of `fedcso run` in the folder of a fit; comments before them are for people."""

SAME_TABLES = ("label", "positive", "drop", "columns", "mirrored", "moved", "data_seed")
"""Settings of a fit that sites need to read their own tables as the fit read its table."""


@dataclass(frozen=True)
class Chosen:
    """What a fit has chosen."""

    problem: str
    method: dict[str, Any]
    """The method and its hyper-parameters, each by name, so that options can change single ones."""
    settings: dict[str, Any]
    """The other settings: of the problem, the plan and the tables."""
    wishes: Wishes
    """What thresholds should achieve."""
    note: str
    """What people should know of the choice; empty if there is nothing."""


def read_chosen(path: Path) -> Chosen:
    """Read the folder of a fit; raise if it is another folder, or if the fit is not finished."""
    folder = RunFolder.open(path)
    if (command := folder.config().get("command")) != "fit":
        raise FedcsoError(f"from: {path} was written by `fedcso {command}`; name a folder written by `fedcso fit`")
    file = path / FILE
    if folder.status != "done" or not file.is_file():
        raise FedcsoError(f"from: {path} is not finished ({folder.status}); continue it with: fedcso resume {path}")
    folder.require_same_sources()
    settings = read_yaml(file, "from")
    try:
        problem, (text,) = settings.pop("problem"), settings.pop("algorithm")
    except (LookupError, TypeError, ValueError) as error:
        raise FedcsoError(f"from: {file} does not name a problem and one algorithm; run the fit again") from error
    method = MethodSpec.parse(str(text))
    hyper_parameters = {name: spell(value) for name, value in method.settings.items()}
    comments = [line.lstrip("# ") for line in file.read_text().splitlines() if line.startswith("#")]
    fit = FitConfig.from_flat(folder.config())
    return Chosen(
        str(problem),
        {"algorithm": [method.name], **hyper_parameters},
        settings | _tables(fit),
        fit.wishes(),
        " ".join(comments),
    )


def _tables(fit: FitConfig) -> dict[str, Any]:
    """Return how sites read their tables."""
    told = {name: getattr(fit, name) for name in SAME_TABLES}
    if fit.site and not fit.columns:  # not a column to learn from, if sites' tables have it
        told["drop"] = ",".join(name for name in (fit.drop, fit.site) if name)
    return {name: value for name, value in told.items() if value != ""}
