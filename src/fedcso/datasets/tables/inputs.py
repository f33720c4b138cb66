"""Turn rows of a table into inputs of a network: encoded columns, or pictures."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pandas as pd
import torch

from fedcso.datasets.tables.encoders import Preparation
from fedcso.datasets.tables.leakage import picture_prints, row_prints
from fedcso.datasets.tables.read import TableRows


class Inputs(Protocol):
    """How rows become inputs."""

    @property
    def names(self) -> list[str]:
        """The names of the inputs' columns; none for pictures."""

    @property
    def preparation(self) -> Preparation | None:
        """Encodes new rows in the same way; None for pictures."""

    def of(self, rows: TableRows, which: np.ndarray) -> torch.Tensor:
        """Return the inputs of some rows."""

    def empty(self) -> torch.Tensor:
        """Return inputs without rows."""

    def prints(self, rows: TableRows, labels: np.ndarray) -> np.ndarray:
        """Return a number for each row, equal for copies of a row."""


@dataclass(frozen=True)
class ColumnInputs:
    """Columns as float32 (rows, encoded columns)."""

    preparation: Preparation

    @property
    def names(self) -> list[str]:
        """The names of the encoded columns."""
        return self.preparation.names

    def of(self, rows: TableRows, which: np.ndarray) -> torch.Tensor:
        """Encode some rows; if a site lacks a column, its values are missing."""
        frame = rows.features.iloc[which]
        absent = {encoder.name for encoder in self.preparation.encoders} - set(frame.columns)
        return self.preparation.apply(frame.reindex(columns=[*frame.columns, *absent]) if absent else frame)

    def empty(self) -> torch.Tensor:
        """Return an array without rows."""
        return self.preparation.apply(pd.DataFrame({encoder.name: [] for encoder in self.preparation.encoders}))

    def prints(self, rows: TableRows, labels: np.ndarray) -> np.ndarray:
        """Compare only the columns that are used, because copies may differ in their identifiers."""
        return row_prints(rows.features[list(dict.fromkeys(e.name for e in self.preparation.encoders))], labels)


@dataclass(frozen=True)
class PictureInputs:
    """Pictures as bytes (rows, channels, height, width)."""

    shape: tuple[int, ...]
    preparation: None = None

    @property
    def names(self) -> list[str]:
        """No names, because pixels have none."""
        return []

    def of(self, rows: TableRows, which: np.ndarray) -> torch.Tensor:
        """Return the pictures of some rows."""
        assert rows.pictures is not None
        return rows.pictures[torch.from_numpy(which)]

    def empty(self) -> torch.Tensor:
        """Return an array without pictures."""
        return torch.zeros((0, *self.shape), dtype=torch.uint8)

    def prints(self, rows: TableRows, labels: np.ndarray) -> np.ndarray:
        """Compare all pixels."""
        assert rows.pictures is not None
        return picture_prints(rows.pictures, labels)
