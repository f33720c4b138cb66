"""Read CSV files: separated by commas, semicolons or tabs, in UTF-8, UTF-16 or Windows-1252 (Latin-1)."""

import codecs
import csv
import gzip
import io
import warnings
from collections.abc import Collection, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pandas as pd

from fedcso.core.errors import FedcsoError
from fedcso.datasets.tables.header import with_names
from fedcso.datasets.tables.numerals import COMMA, POINT, example, fitting_styles, parse, read_numbers

SEPARATORS = (",", ";", "\t")
SAMPLE = 65536
"""The number of bytes from which separator and encoding are determined."""


def read_delimited(file: Path, wanted: Collection[str] = ()) -> tuple[pd.DataFrame, list[str]]:
    """Return the table in a file, and notes; the names of the `wanted` columns help to determine the separator."""
    sample = _sample(file)
    frame, settings = _parse(file, sample, wanted)
    frame, notes = with_names(frame, file)
    if settings["encoding"] == WINDOWS:
        notes.append(f"{file.name}: read as Windows-1252 (Latin-1), because it is not UTF-8")
    # If pandas read numbers with decimal points, commas are not decimal signs, unless other columns show that they are.
    pointed = [str(name) for name in frame.select_dtypes("float") if (frame[name].dropna() % 1 != 0).any()]
    usual = POINT if settings["sep"] == "," or pointed else COMMA
    frame, style, remarks = read_numbers(frame, usual)
    if style == COMMA and pointed:
        frame, more = _read_points_as_groups(frame, file, pointed, settings)
        remarks += more
    return frame, notes + remarks


AS_TEXT = {"dtype": str, "keep_default_na": False}


def read_text(file: Path, wanted: Collection[str] = ()) -> pd.DataFrame:
    """Return the table in a file with every value as it is written there; a missing one is an empty text."""
    frame, _ = _parse(file, _sample(file), wanted, AS_TEXT)
    return with_names(frame, file)[0]


UTF8, UTF16, WINDOWS = "utf-8-sig", "utf-16", "cp1252"


def _sample(file: Path) -> bytes:
    stream: Any
    with gzip.open(file) if file.name.lower().endswith(".gz") else file.open("rb") as stream:
        return bytes(stream.read(SAMPLE))


def _parse(
    file: Path, sample: bytes, wanted: Collection[str], more: Mapping[str, Any] = MappingProxyType({})
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Read a file with the first encoding that can decode it; return the table and the settings used."""
    wide = sample.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    for encoding in [UTF16] if wide else [] if b"\0" in sample else [UTF8, WINDOWS]:
        separator = _separator(sample.decode(encoding, errors="ignore"), wanted)
        settings = {"encoding": encoding, "sep": separator, "skipinitialspace": True, **more}
        try:
            return _read(file, settings), settings
        except UnicodeDecodeError:
            continue
    raise FedcsoError(f"{file} is not text; save it as CSV UTF-8")


def _separator(sample: str, wanted: Collection[str]) -> str:
    """Return the separator that gives the wanted columns or, failing that, the most columns."""

    def merit(separator: str) -> tuple[bool, int]:
        lines = csv.reader(io.StringIO(sample, newline=""), delimiter=separator, skipinitialspace=True)
        try:
            header = [name.strip() for name in next((line for line in lines if any(line)), [])]
        except csv.Error:  # such as an unclosed quote, which pandas reports better
            return False, 0
        return set(wanted) <= set(header), len(header)

    return max(SEPARATORS, key=merit)


def _read(file: Path, settings: dict[str, Any]) -> pd.DataFrame:
    """Read a file with pandas; the header is read separately, because pandas renames repeated names."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)  # a row is longer than the header
        names = pd.read_csv(file, header=None, nrows=1, **(settings | AS_TEXT))
        frame: pd.DataFrame = pd.read_csv(file, low_memory=False, index_col=False, **settings)
    frame.columns = pd.Index(names.iloc[0])
    return frame


def _read_points_as_groups(
    frame: pd.DataFrame, file: Path, names: list[str], settings: dict[str, Any]
) -> tuple[pd.DataFrame, list[str]]:
    """Read 1.234 as 1234, because other columns have decimal commas; pandas read the point as the decimal sign."""
    written = pd.read_csv(file, dtype=str, index_col=False, **settings)
    written.columns = pd.Index([str(name).strip() for name in written.columns])
    read, notes = frame.copy(deep=False), []
    for name in names:
        if COMMA in fitting_styles(written[name]):
            read[name] = parse(written[name], COMMA)
            notes += example(written[name], read[name])
    return read, notes
