"""Read a table from a file: CSV, Parquet, Excel or NPZ."""

import zipfile
import zlib
from collections.abc import Callable, Collection
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from fedcso.core.errors import FedcsoError
from fedcso.datasets.tables.delimited import read_delimited
from fedcso.datasets.tables.header import with_names
from fedcso.datasets.tables.numerals import read_numbers

UNREADABLE = (
    OSError,
    EOFError,
    LookupError,
    MemoryError,
    RuntimeError,
    TypeError,
    ValueError,
    zlib.error,
    zipfile.BadZipFile,
    pd.errors.ParserError,
    pd.errors.ParserWarning,
)
"""Errors that readers raise if a file does not have the format of its name."""


class Sheet(NamedTuple):
    """The content of a file: columns and, in NPZ files, possibly pictures (rows, channels, height, width)."""

    frame: pd.DataFrame
    notes: list[str]
    pictures: np.ndarray | None = None


class Format(NamedTuple):
    """How to read a file format; `wanted` are the names of columns that are expected in the file."""

    read: Callable[[Path, Collection[str]], Sheet]
    needs: str = ""
    """The package that it needs."""


def read_sheet(file: Path, wanted: Collection[str] = ()) -> Sheet:
    """Return the content of a file; raise if it can't be read."""
    if not file.is_file():
        raise FedcsoError(f"there is no file {file}")
    kind = FORMATS[ending(file)]
    try:
        return kind.read(file, wanted)
    except ImportError as error:
        raise FedcsoError(f"reading {file} needs {kind.needs}: pip install {kind.needs}") from error
    except pd.errors.EmptyDataError as error:
        raise FedcsoError(f"{file} is empty") from error
    except (pd.errors.ParserError, pd.errors.ParserWarning) as error:
        if "EOF inside string" in str(error):
            raise FedcsoError(f"{file} can't be read: a double quote is opened and not closed ({error})") from error
        found = str(error).rpartition("C error: ")[2].strip()
        advice = "put numbers and texts that contain the separator in double quotes"
        raise FedcsoError(f"{file} can't be read: a row has more fields than the header ({found}); {advice}") from error
    except UNREADABLE as error:
        raise FedcsoError(f"{file} can't be read ({error})") from error


def ending(file: Path) -> str:
    """Return the ending that determines the format of a table, in lower case; empty if the file is no table."""
    return next((known for known in FORMATS if file.name.lower().endswith(known)), "")


def _delimited(file: Path, wanted: Collection[str]) -> Sheet:
    return Sheet(*read_delimited(file, wanted))


def _parquet(file: Path, wanted: Collection[str]) -> Sheet:
    return _sheet(pd.read_parquet(file, engine="pyarrow", partitioning=None).reset_index(drop=True), file)


def _excel(file: Path, wanted: Collection[str]) -> Sheet:
    """Read the first sheet; the header is read separately, because pandas renames repeated names."""
    with pd.ExcelFile(file, engine="openpyxl") as book:
        cells = pd.read_excel(book, header=None, dtype=object).dropna(how="all")
        first, *rest = book.sheet_names
    if cells.empty:
        raise pd.errors.EmptyDataError
    frame = cells.iloc[1:].reset_index(drop=True).infer_objects()
    frame.columns = pd.Index(["" if pd.isna(name) else name for name in cells.iloc[0]])
    read = _sheet(frame, file)
    return read._replace(notes=read.notes + [f"{file.name}: only the first sheet, {first!r}, is read"] * bool(rest))


def _npz(file: Path, wanted: Collection[str]) -> Sheet:
    """Read arrays: one axis is a column, two axes are several (X becomes X0, X1, …), four axes are pictures."""
    columns: dict[str, np.ndarray] = {}
    pictures: dict[str, np.ndarray] = {}
    with file.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
        for name, array in arrays.items():
            if not isinstance(array, np.ndarray):  # bytes of any other file
                raise ValueError(f"{name} is not an array")
            if array.ndim == 4 and array.dtype.kind in "buif":
                pictures[name] = array
                continue
            if array.ndim not in (1, 2) or array.dtype.kind not in "biufUmM":
                shape = "×".join(map(str, array.shape))
                grey = f"; save pictures of one channel as {name}[:, None]" if array.ndim == 3 else ""
                raise ValueError(
                    f"{name} is {array.dtype} of shape {shape}, not numbers or text with 1 or 2 axes or pictures with "
                    f"4{grey}"
                )
            native = array.astype(array.dtype.newbyteorder("="))
            parts = {name: native} if native.ndim == 1 else {f"{name}{n}": part for n, part in enumerate(native.T)}
            if columns.keys() & parts.keys():
                raise ValueError(f"{name} gives columns of the same name as another array")
            columns |= parts
    lengths = {len(array): name for name, array in (columns | pictures).items()} or {0: ""}
    if len(lengths) > 1:
        said = ", ".join(f"{name} has {length}" for length, name in lengths.items())
        raise ValueError(f"its arrays have different lengths: {said}; each must have one entry for every row")
    if len(pictures) > 1:
        raise ValueError(f"it has several arrays of pictures, {', '.join(pictures)}; keep one of them")
    frame = pd.DataFrame(columns, index=range(next(iter(lengths))))
    return _sheet(frame, file)._replace(pictures=next(iter(pictures.values()), None))


def _sheet(frame: pd.DataFrame, file: Path) -> Sheet:
    frame, notes = with_names(frame, file)
    frame, _, remarks = read_numbers(frame)
    return Sheet(frame, notes + remarks)


DELIMITED = (".csv", ".csv.gz", ".tsv", ".tsv.gz")

FORMATS: dict[str, Format] = {
    **dict.fromkeys(DELIMITED, Format(_delimited)),
    ".parquet": Format(_parquet, "pyarrow"),
    ".npz": Format(_npz),
    ".xlsx": Format(_excel, "openpyxl"),
}
