"""Data sets, one a file; and the tables of all of them."""

from collections.abc import Callable

from fedcso.datasets.characters import Characters
from fedcso.datasets.digits import digits
from fedcso.datasets.examples import Examples
from fedcso.datasets.glyphs import glyphs
from fedcso.datasets.omniglot import fetch as fetch_omniglot
from fedcso.datasets.omniglot import omniglot
from fedcso.errors import UnknownName

DATASETS: dict[str, Callable[[], Examples]] = {"digits": digits}
"""Every data set of labelled examples by name. A new one is a file and a row here."""

CHARACTERS: dict[str, Callable[[], Characters]] = {"omniglot": omniglot, "glyphs": glyphs}
"""Every data set for few-shot learning by name."""

DOWNLOADS: dict[str, Callable[[], None]] = {"omniglot": fetch_omniglot}
"""How to get those that don't come with fedcso."""


def load(name: str) -> Examples:
    """A data set by name."""
    if name not in DATASETS:
        raise UnknownName("dataset", name, DATASETS)
    return DATASETS[name]()


def load_characters(name: str) -> Characters:
    """A data set for few-shot learning by name."""
    if name not in CHARACTERS:
        raise UnknownName("dataset of characters", name, CHARACTERS)
    return CHARACTERS[name]()


__all__ = ["CHARACTERS", "DATASETS", "DOWNLOADS", "Characters", "Examples", "load", "load_characters"]
