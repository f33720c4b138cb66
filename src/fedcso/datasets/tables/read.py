"""Read the rows of a user's table from files: one file for all sites, or one for each."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch

from fedcso.core.errors import FedcsoError, InvalidValue, UnknownName, list_names
from fedcso.datasets.tables import pictures
from fedcso.datasets.tables.columns import check, texts, words_among_numbers
from fedcso.datasets.tables.files import listed, site_of, table_files
from fedcso.datasets.tables.formats import Sheet, read_sheet
from fedcso.datasets.tables.roles import Roles, in_common


class TableRows(NamedTuple):
    """The features, label and site of each row, all in the same order."""

    features: pd.DataFrame
    labels: list[str]
    sites: list[str]
    notes: list[str]
    pictures: torch.Tensor | None = None
    """Pictures as bytes (rows, channels, height, width); if there are pictures, there are no features."""


def read(path: str | Path | Sequence[str | Path], roles: Roles) -> TableRows:
    """Read all rows of a file, a folder, a pattern or a list of files; without a site column, each file is a site."""
    found, notes = table_files(path)
    names = [site_of(file) for file in found]
    if not roles.site and len(set(names)) < len(names):
        twice = max(names, key=names.count)
        raise InvalidValue("data", str(path), f"files of different names, but two are called {twice!r}")
    known: dict[str, None] = {}
    parts = []
    for file in found:
        part, columns = _rows(file, roles)
        parts.append(part)
        known |= dict.fromkeys(columns)
    if not roles.site and len(found) == 1:
        raise FedcsoError(
            f"--site is missing: name the column of {found[0]} that says where each row belongs, or give a folder with "
            "one file for each site"
        )
    roles.require_known(known)
    features, remarks = _joined(found, [part.features for part in parts])
    rows = TableRows(
        features,
        [value for part in parts for value in part.labels],
        [value for part in parts for value in part.sites],
        list(dict.fromkeys([*notes, *(note for part in parts for note in part.notes), *remarks])),
        _joined_pictures(found, [part.pictures for part in parts]),
    )
    return _with_inputs(rows, f"{path}", known, roles)


def read_one(path: str, roles: Roles) -> TableRows:
    """Read all rows of a site's only file; columns that it lacks are noted, because other sites may have them."""
    found, _ = table_files(path)
    if len(found) != 1:
        raise InvalidValue("data", path, f"one file, not {len(found)}")
    rows, known = _rows(found[0], roles)
    lacking = [name for name in (*roles.drop, *roles.columns) if name not in known]
    notes = rows.notes + [f"{name}: there is no such column here" for name in lacking]
    return _with_inputs(rows._replace(notes=notes), path, known, roles)


def read_table(path: str | Path) -> pd.DataFrame:
    """Read a file in the same way as for training, to get new rows for `Preparation.apply`."""
    found, _ = table_files(path)
    if len(found) != 1:
        raise InvalidValue("path", str(path), f"one file, not {len(found)}")
    return read_sheet(found[0]).frame


def _with_inputs(rows: TableRows, path: str, columns: Iterable[str], roles: Roles) -> TableRows:
    """Return the rows; raise if there are no columns to learn from."""
    if rows.pictures is None and not len(rows.features.columns):
        others = [name for name in columns if name not in (roles.label, roles.site)]
        chosen = " by --drop or --columns" if roles.drop or roles.columns else ""
        why = f"; left out{chosen}: {listed(others)}" if others else " besides the label and the site"
        raise FedcsoError(f"{path} has no columns to learn from{why}")
    return rows


def _joined(files: Sequence[Path], tables: Sequence[pd.DataFrame]) -> tuple[pd.DataFrame, list[str]]:
    """Concatenate the rows of all tables; return them with notes on columns that some tables lack."""
    if len(tables) == 1:
        return tables[0].reset_index(drop=True), []
    kept, notes = in_common([(file.name, table.columns) for file, table in zip(files, tables, strict=True)])
    # Column by column: pandas 2 warns if all columns are joined at once and one is empty at some site.
    columns = {
        name: pd.concat(
            [table[name] if name in table else pd.Series(np.nan, index=table.index) for table in tables],
            ignore_index=True,
        )
        for name in kept
    }
    return pd.DataFrame(columns), notes


def _joined_pictures(files: Sequence[Path], parts: Sequence[torch.Tensor | None]) -> torch.Tensor | None:
    """Return the pictures of all files; raise unless either all files have pictures of the same shape or none has."""
    shapes = [None if part is None else tuple(part.shape[1:]) for part in parts]
    for file, shape in zip(files, shapes, strict=True):
        if shape != shapes[0]:
            said = ["columns" if s is None else f"pictures of {'×'.join(map(str, s))}" for s in (shapes[0], shape)]
            raise FedcsoError(f"{files[0]} has {said[0]}, and {file} has {said[1]}; all sites must have the same")
    return None if shapes[0] is None else torch.cat([part for part in parts if part is not None])


def _rows(file: Path, roles: Roles) -> tuple[TableRows, list[str]]:
    """Read a file, and return also the names of all its columns.

    Values are checked here, where messages can still name the file and the row.
    """
    sheet = read_sheet(file, [name for name in (roles.label, roles.site) if name])
    frame = sheet.frame
    if not roles.label:
        names = list_names(frame.columns)
        raise FedcsoError(f"--label is missing: name the column of {file} that holds the labels (it has {names})")
    labels = texts(column_of(frame, roles.label, file))
    labelled = np.array([value is not None for value in labels])
    if not labelled.any():
        raise FedcsoError(f"column {roles.label!r} of {file} has no value in any row")
    sites = sites_of_rows(frame, roles.site, file) if roles.site else [site_of(file)] * len(frame)
    features, seen, notes = (_pictures if _has_pictures(sheet, roles) else _features)(sheet, roles, labelled, file)
    if not labelled.all():
        notes.append(f"{file.name}: rows without a label in column {roles.label!r} are left out: {(~labelled).sum()}")
    known = [(label, site) for label, site in zip(labels, sites, strict=True) if label is not None]
    rows = TableRows(features, [label for label, _ in known], [site for _, site in known], sheet.notes + notes, seen)
    return rows, list(frame.columns)


def column_of(frame: pd.DataFrame, name: str, file: Path) -> pd.Series:
    """Return a column of a file by name; raise if there is none."""
    if name not in frame.columns:
        raise UnknownName(f"column of {file.name}", name, frame.columns)
    return frame[name]


def sites_of_rows(frame: pd.DataFrame, name: str, file: Path) -> list[str]:
    """Return the site of each row; raise if one is missing."""
    sites = []
    for row, value in enumerate(texts(column_of(frame, name, file)), start=1):
        if value is None:
            raise FedcsoError(f"column {name!r} has no value in row {row} of {file}; fill it in, or remove the row")
        sites.append(value)
    return sites


ColumnsOrPictures = tuple[pd.DataFrame, torch.Tensor | None, list[str]]
"""The inputs of rows, as columns or pictures, and notes."""


def _features(sheet: Sheet, roles: Roles, labelled: np.ndarray, file: Path) -> ColumnsOrPictures:
    """Return the columns to learn from, in the rows that have a label."""
    names = roles.features(sheet.frame.columns)
    notes = []
    for name in names:
        check(sheet.frame[name], f" of {file}")
        notes += words_among_numbers(sheet.frame[name], f" of {file.name}")
    return sheet.frame.loc[labelled, names], None, notes


def _pictures(sheet: Sheet, roles: Roles, labelled: np.ndarray, file: Path) -> ColumnsOrPictures:
    """Return the pictures to learn from, in the rows that have a label."""
    names = roles.features(sheet.frame.columns)
    paths = _picture_columns(sheet, roles)
    if len(paths) > 1:
        raise FedcsoError(f"columns {listed(paths)} of {file} name pictures; choose one of them with --columns")
    if sheet.pictures is not None:
        pixels, notes = pictures.from_array(sheet.pictures[labelled], file)
    else:
        pixels, notes = pictures.from_files(sheet.frame.loc[labelled, paths[0]], file), []
    others = [name for name in names if name not in paths]
    notes += [f"{file.name}: columns beside the pictures are left out ({listed(others)})"] if others else []
    return sheet.frame.loc[labelled, []], torch.from_numpy(pixels), notes


def _has_pictures(sheet: Sheet, roles: Roles) -> bool:
    return sheet.pictures is not None or bool(_picture_columns(sheet, roles))


def _picture_columns(sheet: Sheet, roles: Roles) -> list[str]:
    names = roles.features(sheet.frame.columns)
    return [name for name in names if pictures.names_pictures(sheet.frame[name])]
