"""Data sets, one a file; and the table of all of them."""

from collections.abc import Callable

from fedcso.datasets.digits import digits
from fedcso.datasets.examples import Examples
from fedcso.errors import UnknownName

DATASETS: dict[str, Callable[[], Examples]] = {"digits": digits}
"""Every data set by name. A new one is a file and a row here."""


def load(name: str) -> Examples:
    """A data set by name."""
    if name not in DATASETS:
        raise UnknownName("dataset", name, DATASETS)
    return DATASETS[name]()


__all__ = ["DATASETS", "Examples", "load"]
