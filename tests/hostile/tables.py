"""Tables as they should not be: damaged, of another kind than their name says, and readable but extreme."""

import gzip
import io
import math
import zipfile

import numpy as np
import pandas as pd

from fedcso.datasets.tables.describe import describe_table
from fedcso.datasets.tables.sites import load_sites
from tests.hostile.spoiling import TEXTS, spoil_bytes

GOOD = pd.DataFrame({"a": np.arange(60) * 0.5, "b": ["x", "y"] * 30, "site": ["s", "t"] * 30, "y": [0, 0, 0, 1] * 15})
CELLS = [0, -1, 1e308, -1e308, 5e-324, math.nan, math.inf, -math.inf, None, True, 2**63 - 1, 10**30, "1900-01-01"]
CELLS += ["9999-99-99", "0001-01-01", '"', "=1+1", "1,5", "1e400", "\x00", *TEXTS]

MOST_ROWS = 50_000
"""More rows would take the memory here, and not in what is tried."""


def frame(rng):
    """A readable table with extreme cells, rows and columns."""
    table = GOOD
    for _ in range(rng.randint(1, 4)):
        table = table.astype(object)
        name, cell = rng.choice(list(table.columns) or ["a"]), rng.choice(CELLS)
        ways = ["one", "all", "drop", "few", "double", "name", "new", "many"]
        way = rng.choice(ways)
        if way == "one" and len(table) and name in table:
            table.iloc[rng.randrange(len(table)), list(table.columns).index(name)] = cell
        elif way == "all":
            table[name] = cell
        elif way == "drop":
            table = table.drop(columns=name, errors="ignore")
        elif way == "few":
            table = table.iloc[: rng.choice([0, 1, 2, 5])]
        elif way == "double":
            table = pd.concat([table, table.iloc[:, : rng.randint(0, 2)]], axis=1)
            break
        elif way == "name":
            table = table.rename(columns={name: rng.choice([*TEXTS, "y", 0, "a b"])})
        elif way == "new":
            table[str(rng.choice(TEXTS))] = [rng.choice(CELLS) for _ in range(len(table))]
        else:
            table = pd.concat([table] * rng.choice([2, 30]), ignore_index=True).iloc[:MOST_ROWS]
    return table


def written(rng, table, ending):
    """The table as a file; a good one where it can't be written so."""
    stream = io.BytesIO()
    try:
        if ending == "xlsx":
            table.iloc[:100].map(lambda cell: str(cell)[:1000] if isinstance(cell, str) else cell).to_excel(
                stream, index=False
            )
        elif ending == "parquet":
            table.map(lambda cell: None if cell is None else str(cell)).to_parquet(stream)
        elif ending == "npz":
            np.savez(stream, **{str(name): table[name].iloc[:100].to_numpy(str) for name in table})
        else:
            text = table.to_csv(index=False, sep="\t" if "tsv" in ending else ",").encode(errors="replace")
            stream.write(gzip.compress(text, 1) if ending.endswith("gz") else text)
    except Exception:  # writers refuse much of this
        return written(rng, GOOD, ending)
    return stream.getvalue()


def strange_arrays(rng):
    """An .npz file whose arrays have impossible or useless shapes and types."""
    stream, header = io.BytesIO(), io.BytesIO()
    shape = rng.choice([(10**13,), (2**31, 2**31), (0,), (3, 4, 5), (2, 1, 3, 3), (), (10**6, 0)])
    kind = rng.choice(["<f8", "|O", "<U9", "|V8", "<c16", "<M8[ns]", "|b1", ">f4"])
    np.lib.format.write_array_header_1_0(header, {"descr": kind, "fortran_order": False, "shape": shape})
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("a.npy", header.getvalue() + rng.randbytes(rng.choice([0, 8, 1000])))
        good = io.BytesIO()
        np.save(good, GOOD["y"].to_numpy())
        archive.writestr("y.npy", good.getvalue())
    return stream.getvalue()


class OfASite:
    """A site's own table, read as for training and as for a description."""

    title = "tables"
    endings = ("csv", "csv", "csv.gz", "tsv", "parquet", "npz", "xlsx")

    def make(self, rng, place):
        ending = rng.choice(self.endings)
        content = written(rng, frame(rng) if rng.random() < 0.6 else GOOD, ending)
        if ending == "npz" and rng.random() < 0.5:
            content = strange_arrays(rng)
        if rng.random() < 0.4:
            content = spoil_bytes(rng, content)
        if rng.random() < 0.1:
            ending = rng.choice(self.endings)
        if rng.random() < 0.005:
            ending, content = "csv.gz", gzip.compress(b"a,y\n" + b"1,0\n" * 10**5 + b"7" * 10**7, 1)
        self.file = place / f"table.{ending}"
        self.file.write_bytes(content)
        self.described = rng.random() < 0.5

    def face(self, place):
        if self.described:
            describe_table(str(self.file), label="y")
        else:
            load_sites(data=str(self.file), label="y", site="site")
