"""The rows of a user's table, from files: CSV, Parquet or NPZ, all sites in one or one file a site."""

import glob
import warnings
import zipfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from fedcso.core.errors import FedcsoError, InvalidValue, UnknownName
from fedcso.datasets.tables.columns import NUMBERS, kind, numbers, texts

UNREADABLE = (
    OSError,
    EOFError,
    LookupError,
    RuntimeError,
    TypeError,
    ValueError,
    zlib.error,
    zipfile.BadZipFile,
    pd.errors.ParserError,
    pd.errors.ParserWarning,
)
"""How files turn out not to be what their names say."""


class Rows(NamedTuple):
    """What is known of each row, in the same order: what to learn from, its label and its site."""

    features: pd.DataFrame
    labels: list[str]
    sites: list[str]
    notes: list[str]


def read(path: str | Path | Sequence[str | Path], label: str, site: str | None) -> Rows:
    """All rows of a file, a folder, a glob or a list of files; without a column `site`, each file is a site."""
    found = files(path)
    if site is None and len(found) == 1:
        raise InvalidValue("site", None, f"the column of {found[0]} that names each row's site, or give a file a site")
    if site == label:
        raise InvalidValue("site", site, "another column than the label")
    names = [_site_of(file) for file in found]
    if site is None and len(set(names)) < len(names):
        twice = max(names, key=names.count)
        raise InvalidValue("path", str(path), f"files of different names, but two are called {twice!r}")
    parts = [_rows(file, label, site) for file in found]
    first = parts[0].features.columns
    for file, part in zip(found, parts, strict=True):
        differing = sorted(set(first) ^ set(part.features.columns))
        if differing:
            raise FedcsoError(f"{found[0]} and {file} must have the same columns; only one has {differing[0]!r}")
    # Column by column: pandas 2 has doubts where all columns are joined at once and one is empty at some site.
    joined = {name: pd.concat([part.features[name] for part in parts], ignore_index=True) for name in first}
    return Rows(
        pd.DataFrame(joined),
        [value for part in parts for value in part.labels],
        [value for part in parts for value in part.sites],
        list(dict.fromkeys(note for part in parts for note in part.notes)),
    )


def read_one(path: str, label: str) -> Rows:
    """All rows of the one file that a site has."""
    found = files(path)
    if len(found) != 1:
        raise InvalidValue("data", path, f"one file, not {len(found)}")
    return _rows(found[0], label, None)


def files(path: str | Path | Sequence[str | Path]) -> list[Path]:
    """The files that are meant, in the order of their names."""
    if isinstance(path, str | Path):
        place = Path(path).expanduser()
        if place.is_dir() and str(path):
            found = [file for file in sorted(place.iterdir()) if file.is_file() and _ending(file)]
        else:
            found = [Path(name) for name in sorted(glob.glob(str(place))) if Path(name).is_file()]
            found = [place] if place.is_file() else found
    else:
        found = [Path(name).expanduser() for name in path]
    if not found:
        raise InvalidValue("path", str(path), f"a file, folder or pattern, and files must end in {_endings()}")
    for file in found:
        if not _ending(file):
            raise InvalidValue("path", str(file), f"a file that ends in {_endings()}")
    return found


def _ending(file: Path) -> str | None:
    return next((ending for ending in READERS if file.name.lower().endswith(ending)), None)


def _endings() -> str:
    return ", ".join(READERS)


def _site_of(file: Path) -> str:
    return file.name[: -len(_ending(file) or "")]


def _rows(file: Path, label: str, site: str | None) -> Rows:
    """The rows of one file, which are checked here because here it is known which row of which file is wrong."""
    if not file.is_file():
        raise FedcsoError(f"there is no file {file}")
    try:
        frame = READERS[str(_ending(file))](file)
    except ImportError as error:
        raise FedcsoError(f"reading {file} needs pyarrow: pip install 'fedcso[parquet]'") from error
    except pd.errors.EmptyDataError as error:
        raise FedcsoError(f"{file} is empty") from error
    except UnicodeDecodeError as error:
        raise FedcsoError(f"{file} is not text in UTF-8 ({error}); save it as CSV UTF-8") from error
    except UNREADABLE as error:
        raise FedcsoError(f"{file} can't be read ({error})") from error
    frame.columns = pd.Index([str(name).strip() for name in frame.columns])
    names = list(frame.columns)
    if len(names) == 1 and (";" in names[0] or "\t" in names[0]):
        raise FedcsoError(f"{file} has only one column, {names[0]!r}; separate columns by commas")
    repeated = [name for name in frame.columns[frame.columns.duplicated()] if name]
    if repeated:
        raise FedcsoError(f"{file} has two columns called {repeated[0]!r}; give each a name of its own")
    if not len(frame):
        raise FedcsoError(f"{file} has no rows")
    labels = _complete(frame, label, file)
    sites = [_site_of(file)] * len(frame) if site is None else _complete(frame, site, file)
    features = frame.drop(columns=[name for name in names if name in (label, site, "")])
    if not len(features.columns):
        raise FedcsoError(f"{file} has no columns to learn from besides the label and the site")
    for name in features.columns:
        if kind(features[name]) == NUMBERS:
            numbers(features[name], f" of {file}")
    unnamed = ["a column without a name was left out"] if "" in names else []
    return Rows(features, labels, sites, unnamed)


def _complete(frame: pd.DataFrame, name: str, file: Path) -> list[str]:
    """A column as text; without it, or with a gap in it, nothing can be done."""
    if name not in frame.columns:
        raise UnknownName("column", name, [column for column in frame.columns if column])
    values = []
    for row, value in enumerate(texts(frame[name]), start=1):
        if value is None:
            raise FedcsoError(f"column {name!r} has no value in row {row} of {file}; fill it in, or remove the row")
        values.append(value)
    return values


def _csv(file: Path) -> pd.DataFrame:
    """Names are read apart, because pandas renames those that occur twice."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)  # a row is longer than the header
        names = pd.read_csv(
            file, header=None, nrows=1, dtype=str, keep_default_na=False, encoding="utf-8-sig", skipinitialspace=True
        )
        frame = pd.read_csv(file, encoding="utf-8-sig", skipinitialspace=True, low_memory=False, index_col=False)
    frame.columns = pd.Index(names.iloc[0])
    return frame


def _parquet(file: Path) -> pd.DataFrame:
    return pd.read_parquet(file, engine="pyarrow", partitioning=None).reset_index(drop=True)


def _npz(file: Path) -> pd.DataFrame:
    """An array of one axis is a column, one of two axes several: X becomes X0, X1, …"""
    columns: dict[str, np.ndarray] = {}
    with file.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
        for name, array in arrays.items():
            if array.ndim not in (1, 2) or array.dtype.kind not in "biufUmM":
                shape = "×".join(map(str, array.shape))
                raise ValueError(f"{name} is {array.dtype} of shape {shape}, not numbers or text with 1 or 2 axes")
            native = array.astype(array.dtype.newbyteorder("="))
            parts = {name: native} if native.ndim == 1 else {f"{name}{n}": part for n, part in enumerate(native.T)}
            if columns.keys() & parts.keys():
                raise ValueError(f"{name} gives columns of the same name as another array")
            columns |= parts
    if len({len(column) for column in columns.values()}) > 1:
        raise ValueError("its arrays have different lengths")
    return pd.DataFrame(columns)


READERS: dict[str, Callable[[Path], pd.DataFrame]] = {
    ".csv": _csv,
    ".csv.gz": _csv,
    ".parquet": _parquet,
    ".npz": _npz,
}
