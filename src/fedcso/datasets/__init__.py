"""Data sets, one in each file, and tables that list them by name, one table for each form of data."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from fedcso.core.errors import UnknownName
from fedcso.core.late import importer
from fedcso.core.registry import Registry

if TYPE_CHECKING:
    from fedcso.datasets.characters import Characters
    from fedcso.datasets.examples import Examples
    from fedcso.datasets.images import Images

DATASETS: "Registry[Callable[[], Examples]]" = Registry(
    "dataset",
    __name__,
    {
        "digits": "digits:digits",
        "breast_cancer": "breast_cancer:breast_cancer",
        "diamonds": "diamonds:diamonds",
        "flchain": "flchain:flchain",
    },
)
"""Data sets of labelled examples by name. To add one, write a file and add a row here."""

IMAGES: "Registry[Callable[[], Images]]" = Registry(
    "dataset of pictures",
    __name__,
    {
        "mnist": "mnist:mnist",
        "cifar10": "cifar10:cifar10",
    },
)
"""Data sets of labelled pictures by name, with their published test sets."""

CHARACTERS: "Registry[Callable[[], Characters]]" = Registry(
    "dataset of characters",
    __name__,
    {
        "omniglot": "omniglot:omniglot",
        "glyphs": "glyphs:glyphs",
    },
)
"""Data sets for few-shot learning by name."""

TABLES = (DATASETS, IMAGES, CHARACTERS)


def load(name: str) -> "Examples":
    """Return a data set of labelled examples by name."""
    return DATASETS[name]()


def load_images(name: str) -> "Images":
    """Return a data set of labelled pictures by name."""
    return IMAGES[name]()


def load_characters(name: str) -> "Characters":
    """Return a data set for few-shot learning by name."""
    return CHARACTERS[name]()


def load_any(name: str) -> "Examples | Images | Characters":
    """Return a data set of any form by name."""
    for table in TABLES:
        if name in table:
            return table[name]()
    raise UnknownName("dataset", name, [known for table in TABLES for known in table])


__all__ = [
    "CHARACTERS",
    "DATASETS",
    "IMAGES",
    "TABLES",
    "Characters",
    "Examples",
    "Images",
    "load",
    "load_any",
    "load_characters",
    "load_images",
]

if not TYPE_CHECKING:  # with it, a type checker would accept any name
    __getattr__ = importer(
        __name__,
        {
            "Characters": "fedcso.datasets.characters",
            "Examples": "fedcso.datasets.examples",
            "Images": "fedcso.datasets.images",
        },
    )
