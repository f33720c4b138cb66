"""Read chosen columns of a user's table, each in a role that a problem gives it: an instrument, a reward, a state."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from fedcso.core.errors import FedcsoError, list_names
from fedcso.datasets.tables.columns import missing, numbers, texts
from fedcso.datasets.tables.files import site_of, table_files
from fedcso.datasets.tables.formats import read_sheet
from fedcso.datasets.tables.read import column_of, sites_of_rows


class RoleColumns(NamedTuple):
    """The columns of each site by role: numbers as float64, names as text."""

    sites: list[str]
    columns: list[dict[str, np.ndarray]]
    notes: list[str]


def read_by_role(path: str, numeric: Mapping[str, str], named: Mapping[str, str], site: str = "") -> RoleColumns:
    """Read columns of a file, a folder or a pattern; `numeric` and `named` say which column is in which role.

    Rows in which one of them is missing are left out, with a note. Without a site column, each file is a site.
    """
    files, notes = table_files(path)
    by_site: dict[str, list[dict[str, np.ndarray]]] = {}
    for file in files:
        part, sites, dropped = _read_file(file, numeric, named, site)
        notes += [f"{file.name}: rows without a value in a column that is used are left out: {dropped}"] * bool(dropped)
        for name in dict.fromkeys(sites.tolist()):
            by_site.setdefault(name, []).append({role: values[sites == name] for role, values in part.items()})
    if not by_site:
        raise FedcsoError(f"{path} has no row with a value in all of the columns {list_names(_chosen(numeric, named))}")
    joined = [
        {role: np.concatenate([part[role] for part in parts]) for role in (*numeric, *named)}
        for parts in by_site.values()
    ]
    if len(joined) == 1:
        notes.append(f"all rows are at one site, {next(iter(by_site))!r}: this is training in one place, not federated")
    return RoleColumns(list(by_site), joined, notes)


def _read_file(
    file: Path, numeric: Mapping[str, str], named: Mapping[str, str], site: str
) -> tuple[dict[str, np.ndarray], np.ndarray, int]:
    """Return the columns of the complete rows, the site of each row, and how many rows are incomplete."""
    chosen = _chosen(numeric, named)
    frame = read_sheet(file, [*chosen, *([site] if site else [])]).frame
    for role, name in {**numeric, **named}.items():
        if not name:
            raise FedcsoError(
                f"--{role.replace('_', '-')} is missing: name the column of {file} that holds the {role} "
                f"(it has {list_names(frame.columns)})"
            )
    columns = {role: column_of(frame, name, file) for role, name in {**numeric, **named}.items()}
    complete = ~np.any([missing(column) for column in columns.values()], axis=0)
    sites = sites_of_rows(frame, site, file) if site else [site_of(file)] * len(frame)
    values = {role: numbers(columns[role], f" of {file}")[complete] for role in numeric}
    values |= {role: np.array(texts(columns[role]), dtype=object)[complete] for role in named}
    return values, np.array(sites, dtype=object)[complete], int((~complete).sum())


def _chosen(*roles: Mapping[str, str]) -> list[str]:
    return [name for part in roles for name in part.values() if name]
