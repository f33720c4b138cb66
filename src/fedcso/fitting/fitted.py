"""The result of a fit in Python: tables, sentences, figures, and predictions for new rows."""

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from fedcso.fitting.exported import Model
from fedcso.fitting.page import tables
from fedcso.fitting.result import Decision
from fedcso.fitting.words import summary
from fedcso.reports.tables import as_markdown


@dataclass(frozen=True)
class Fitted:
    """A finished fit. In a notebook it shows its summary and the comparison."""

    folder: Path
    """The run folder, with decision.html, model-card.md, trials.csv and the folder `model`."""
    decision: Decision
    """All numbers of the page."""

    @property
    def comparison(self) -> pd.DataFrame:
        """The chosen model and what it is compared with, on the test data."""
        return pd.DataFrame(tables(self.decision)["compared"])

    @property
    def trials(self) -> pd.DataFrame:
        """Everything that was tried, with its value on validation data."""
        return pd.DataFrame(self.decision.trials)

    def predict(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return new rows with their calibrated probability and a column of alerts for each threshold."""
        return Model(self.folder / "model").score(rows).rows

    def summary(self) -> str:
        """Return the result in plain words, with the comparison as a table."""
        compared = [
            {name: value for name, value in row.items() if name != "AUROC"} for row in tables(self.decision)["compared"]
        ]
        paths = [f"page    {self.folder / 'decision.html'}", f"model   {self.folder / 'model'}"]
        following = f"next    fedcso predict {self.folder} NEW.csv --out scored.csv"
        return "\n".join([*summary(self.decision), "", as_markdown(compared), *paths, following])

    def _repr_html_(self) -> str:
        text = "".join(f"<p>{sentence}</p>" for sentence in summary(self.decision))
        return text + self.comparison.to_html(index=False)
