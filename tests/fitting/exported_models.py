"""Exported models for tests: networks with random weights, for a table with all kinds of columns and for pictures."""

import atexit
import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch

from fedcso.core.judge import Network
from fedcso.datasets.tables.encoders import Preparation
from fedcso.datasets.tables.read import read_table
from fedcso.datasets.tables.table import load_table
from fedcso.fitting.model import write_model
from fedcso.models.score_nets import build_network
from fedcso.problems.scores import to_network_input
from fedcso.reports.calibration import Calibration, platt
from fedcso.reports.score_counts import ScoreCounts, fixed_bins
from fedcso.reports.thresholds import Threshold, for_alerts, for_recall


class Exported(NamedTuple):
    """A model, and what it was made of."""

    path: Path
    network: torch.nn.Module
    calibration: Calibration
    preparation: Preparation | None
    thresholds: list[Threshold]
    fit: Callable[[ScoreCounts], Calibration]

    def own(self, inputs: torch.Tensor) -> tuple[np.ndarray, np.ndarray]:
        """Return scores and probabilities as fedcso computes them."""
        with torch.no_grad():
            scores = self.network(to_network_input(inputs)).flatten().numpy()
        return scores, self.calibration.apply(scores)

    def own_of_file(self, file: Path) -> tuple[np.ndarray, np.ndarray]:
        """Return scores and probabilities of a table, read and prepared as for training."""
        return self.own(self.preparation.apply(read_table(file)))


def messy(rows: int, seed: int = 0) -> pd.DataFrame:
    """Return a table with numbers, gaps, categories, codes, dates and truth values."""
    rng = np.random.default_rng(seed)
    days = pd.Timestamp("2019-01-01") + pd.to_timedelta(rng.integers(0, 900, rows), "D")
    frame = pd.DataFrame(
        {
            "age": rng.integers(20, 90, rows).astype(float),
            "dose": (1500 * rng.random(rows)).round(2),
            "sex": rng.choice(["f", "m"], rows),
            "ward": rng.choice(["007", "A1", "B2", "12"], rows),
            "smoker": rng.choice(["yes", "no"], rows),
            "seen": days.strftime("%d.%m.%Y"),
            "hospital": rng.choice(["north", "south", "west"], rows),
        }
    )
    frame.loc[rng.random(rows) < 0.1, "age"] = np.nan
    frame.loc[rng.random(rows) < 0.1, "sex"] = None
    frame.loc[rng.random(rows) < 0.1, "seen"] = None
    frame["ill"] = (rng.random(rows) < 0.2).astype(int)
    return frame


@cache
def table_model(fit: Callable[[ScoreCounts], Calibration] = platt) -> Exported:
    """Export a model for rows such as `messy` makes, once in all tests."""
    folder = _new_folder()
    messy(600).to_csv(folder / "train.csv", index=False)
    table = load_table(folder / "train.csv", "ill", "hospital")
    torch.manual_seed(0)
    network = build_network("mlp", table.train[0].inputs.shape[1:]).eval()
    inputs = torch.cat([part.inputs for part in table.train])
    return _export(folder, network, inputs, table.preparation, fit)


@cache
def picture_model() -> Exported:
    """Export a model for grey pictures of 16×16 pixels, once in all tests."""
    folder = _new_folder()
    torch.manual_seed(0)
    pictures = torch.randint(256, (40, 1, 16, 16), dtype=torch.uint8)
    return _export(folder, build_network("cnn", torch.Size((1, 16, 16))).eval(), pictures, None, platt)


def _new_folder() -> Path:
    """Return a folder that is removed when the tests end."""
    folder = tempfile.mkdtemp(prefix="fedcso-exported-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def _export(folder, network, inputs, preparation, fit) -> Exported:
    with torch.no_grad():
        scores = network(to_network_input(inputs)).flatten().double().numpy()
    rng = np.random.default_rng(1)
    labels = (rng.random(len(scores)) < 1 / (1 + np.exp(-4 * (scores - scores.mean()) / scores.std()))).astype(int)
    counts = fixed_bins().count(scores, labels)
    calibration, thresholds = fit(counts), [for_recall(counts, 0.8), for_alerts(counts, 10, 100)]
    example = Network(network, to_network_input(inputs[:2]))
    path = write_model(folder, example, calibration, preparation, thresholds, {"method": "FCSG-M"})
    return Exported(path, network, calibration, preparation, thresholds, fit)
