"""Score new rows with an exported model: needs onnxruntime, numpy and pandas, neither torch nor the rest of fedcso.

Every exported model carries a copy of this file and of those it imports (`fedcso.fitting.model`), so that new rows are
read and prepared by the code that read and prepared the training rows.
"""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from fedcso.core.errors import FedcsoError
from fedcso.datasets.tables.columns import texts
from fedcso.datasets.tables.delimited import read_text
from fedcso.datasets.tables.encoders import OTHER, Categorical, Preparation
from fedcso.datasets.tables.formats import DELIMITED, FORMATS, Sheet, ending, read_sheet
from fedcso.datasets.tables.pictures import from_array, from_files, names_pictures, scaled

BATCH = 4096
"""Rows that are scored at a time."""

SHOWN = 5
"""This many names are listed in a note."""


class Scored(NamedTuple):
    """Rows with their probabilities and alerts, and notes on what was missing or unknown."""

    rows: pd.DataFrame
    notes: list[str]


class Model:
    """An exported model, ready to score rows."""

    def __init__(self, folder: str | Path):
        self.folder = Path(folder)
        session = _runtime().InferenceSession
        try:
            self.session = session(self.folder / "model.onnx")
            self.thresholds = json.loads((self.folder / "thresholds.json").read_text())["thresholds"]
            preparation = self.folder / "preparation.json"
            self.preparation = Preparation.from_json(preparation.read_text()) if preparation.exists() else None
        except Exception as error:  # a file is missing or damaged; onnxruntime raises many kinds of errors
            raise FedcsoError(f"{folder} can't be read as a model ({str(error).partition(chr(10))[0]})") from error

    @property
    def columns(self) -> list[str]:
        """The columns that the model uses; a model for pictures has none."""
        return list(dict.fromkeys(encoder.name for encoder in self.preparation.encoders)) if self.preparation else []

    def predict(self, inputs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the score and the probability of each row of prepared inputs."""
        parts = [
            self.session.run(["score", "probability"], {"inputs": inputs[start : start + BATCH]})
            for start in range(0, len(inputs), BATCH)
        ]
        score, probability = (np.concatenate(column) for column in zip(*parts, strict=True))
        return score, probability

    def score(self, table: pd.DataFrame) -> Scored:
        """Score the rows of a table that has the columns of the training data, in any order."""
        inputs, notes = self._prepared(table)
        return Scored(self._with_results(table, inputs), notes)

    def score_file(self, path: str | Path) -> Scored:
        """Score the rows of a file; its columns stay as they are written there."""
        file = Path(path).expanduser()
        if file.is_file() and not ending(file):
            raise FedcsoError(f"{file} can't be read as a table; save it as {', '.join(FORMATS)}")
        sheet = read_sheet(file, self.columns)
        if self.preparation is None:
            inputs, notes = self._pixels(sheet, file)
            return Scored(self._with_results(sheet.frame, inputs), sheet.notes + notes)
        written = read_text(file, self.columns) if ending(file) in DELIMITED else sheet.frame
        inputs, notes = self._prepared(_with_codes(sheet.frame, written, self.preparation))
        return Scored(self._with_results(written, inputs), sheet.notes + notes)

    def _prepared(self, table: pd.DataFrame) -> tuple[np.ndarray, list[str]]:
        """Return the inputs that a table's rows become, and notes; a column that is not there has missing values."""
        if self.preparation is None:
            raise FedcsoError("the model scores pictures, not a table: give it a file with pictures")
        if not len(table):
            raise FedcsoError("the table has no rows")
        absent = [name for name in self.columns if name not in table.columns]
        if len(absent) == len(self.columns):
            has = _listed(list(map(str, table.columns)))
            raise FedcsoError(f"the table has none of the model's columns ({_listed(absent)}); it has {has}")
        notes = []
        if absent:
            said = f"{len(absent)} of the model's {len(self.columns)} columns are not there"
            notes.append(f"{said} and count as missing values: {_listed(absent)}")
        whole = table.reindex(columns=[*table.columns, *absent])
        return self.preparation.encode(whole), notes + _unknown_categories(whole, self.preparation)

    def _pixels(self, sheet: Sheet, file: Path) -> tuple[np.ndarray, list[str]]:
        """Return the pictures of a file as the network's inputs, and notes."""
        shape = tuple(self.session.get_inputs()[0].shape[1:])
        paths = [name for name in sheet.frame.columns if names_pictures(sheet.frame[name])]
        if sheet.pictures is not None:
            pixels, notes = from_array(sheet.pictures, file)
        elif len(paths) == 1:
            pixels, notes = from_files(sheet.frame[paths[0]], file), []
        else:
            raise FedcsoError(f"{file} has no pictures: give an NPZ file, or a table with one column of picture files")
        if pixels.shape[1:] != shape:
            has, needs = ("×".join(map(str, one)) for one in (pixels.shape[1:], shape))
            raise FedcsoError(f"the pictures of {file} have the shape {has}, and the model needs {needs}: resize them")
        return scaled(pixels), notes

    def _with_results(self, table: pd.DataFrame, inputs: np.ndarray) -> pd.DataFrame:
        """Return a table with a probability for each row, and 1 where a threshold makes it an alert."""
        score, probability = self.predict(inputs)
        score = score.astype(np.float64)  # as thresholds are: one must not be rounded to the score below it
        results: dict[str, Any] = {"probability": probability}
        results |= {one["column"]: (score >= one["score"]).astype(np.int64) for one in self.thresholds}
        for name in results:
            if name in table.columns:
                raise FedcsoError(f"the table has a column {name!r} already, which would be overwritten: rename it")
        return table.assign(**results)


def _with_codes(table: pd.DataFrame, written: pd.DataFrame, preparation: Preparation) -> pd.DataFrame:
    """Return a table in which known categories are as they are written.

    In training, a code such as 007 was text because of others in its column, such as A1. New rows may hold no other,
    and pandas reads it as the number 7.
    """
    read = table.copy(deep=False)
    for encoder in preparation.encoders:
        if isinstance(encoder, Categorical) and encoder.name in table.columns:
            words = written[encoder.name].astype(object).map(lambda value: str(value).strip())
            known = words.isin(encoder.categories)
            read[encoder.name] = table[encoder.name].astype(object).mask(known, words)
    return read


def _unknown_categories(table: pd.DataFrame, preparation: Preparation) -> list[str]:
    """Return a note on each column with categories that training has not seen."""
    notes = []
    for encoder in preparation.encoders:
        if isinstance(encoder, Categorical):
            known = {*encoder.categories, OTHER, None}
            unknown = [value for value in texts(table[encoder.name]) if value not in known]
            different = list(map(str, dict.fromkeys(unknown)))
            if unknown:
                said = f"{len(unknown)} rows have a category that training did not keep"
                notes.append(f"{encoder.name}: {said}, and count as {OTHER!r}: {_listed(different)}")
    return notes


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def _runtime() -> Any:
    try:
        import onnxruntime
    except ImportError as error:
        raise FedcsoError("scoring rows needs onnxruntime: pip install onnxruntime") from error
    return onnxruntime


def main(folder: Path, arguments: Sequence[str], program: str = "predict.py") -> int:
    """Score the rows of a file with the model in a folder; print them as CSV, or write them to a file."""
    parser = argparse.ArgumentParser(program, description="Score new rows; the result is CSV.")
    parser.add_argument("rows", help=f"the new rows ({', '.join(FORMATS)})")
    parser.add_argument("--out", default="", help="the file to write; by default rows are printed")
    options = parser.parse_args(arguments)
    try:
        score_to(Model(folder), options.rows, options.out)
        sys.stdout.flush()
    except FedcsoError as error:
        print(f"{program}: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # the output is no longer read, as after `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:  # the result can't be written
        print(f"{program}: {error}", file=sys.stderr)
        return 1
    return 0


def score_to(model: Model, rows: str, out: str) -> None:
    """Score the rows of a file, and write the result to another one, or print it; notes go to the terminal."""
    if out and not out.lower().endswith(".csv"):
        raise FedcsoError(f"--out {out} must end in .csv: scored rows are written as CSV")
    scored = model.score_file(rows)
    for note in scored.notes:
        print(f"note: {note}", file=sys.stderr)
    scored.rows.to_csv(out or sys.stdout, index=False)
    if out:
        print(f"written {out}", file=sys.stderr)
