"""Data sets, one a file; and the tables of all of them."""

from collections.abc import Callable

from fedcso.core.errors import UnknownName
from fedcso.datasets import breast_cancer, cifar10, digits, glyphs, mnist, omniglot
from fedcso.datasets.characters import Characters
from fedcso.datasets.examples import Examples
from fedcso.datasets.images import Images

DATASETS: dict[str, Callable[[], Examples]] = {
    "digits": digits.digits,
    "breast_cancer": breast_cancer.breast_cancer,
}
"""Every data set of labelled examples by name. A new one is a file and a row here."""

IMAGES: dict[str, Callable[[], Images]] = {"mnist": mnist.mnist, "cifar10": cifar10.cifar10}
"""Every data set of labelled pictures by name, with the test set it was published with."""

CHARACTERS: dict[str, Callable[[], Characters]] = {"omniglot": omniglot.omniglot, "glyphs": glyphs.glyphs}
"""Every data set for few-shot learning by name."""

DOWNLOADS: dict[str, Callable[[], None]] = {
    "omniglot": omniglot.fetch,
    "mnist": mnist.fetch,
    "cifar10": cifar10.fetch,
}
"""How to get those that don't come with fedcso."""


def load(name: str) -> Examples:
    """A data set by name."""
    if name not in DATASETS:
        raise UnknownName("dataset", name, DATASETS)
    return DATASETS[name]()


def load_images(name: str) -> Images:
    """A data set of labelled pictures by name."""
    if name not in IMAGES:
        raise UnknownName("dataset of pictures", name, IMAGES)
    return IMAGES[name]()


def load_characters(name: str) -> Characters:
    """A data set for few-shot learning by name."""
    if name not in CHARACTERS:
        raise UnknownName("dataset of characters", name, CHARACTERS)
    return CHARACTERS[name]()


__all__ = [
    "CHARACTERS",
    "DATASETS",
    "DOWNLOADS",
    "IMAGES",
    "Characters",
    "Examples",
    "Images",
    "load",
    "load_characters",
    "load_images",
]
