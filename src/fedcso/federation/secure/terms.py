"""The terms of a secure sum: what every site that takes part must have been told alike.

Each site signs the digest of the terms that it was told, and every other site checks the signature against its own
terms. A coordinator that tells sites different models, settings, weights or lists of sites, so that all updates but one
are known to it, is thereby found out before any update leaves.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from fedcso.core.errors import is_number
from fedcso.core.packing import as_bytes
from fedcso.core.tree import Tree, named_leaves
from fedcso.federation.request import Order
from fedcso.federation.secure.fixed_point import Ranges
from fedcso.federation.wire import Unreadable

OF_ONE_SITE = ("client", "remembered", "seconds", "secure")
"""The parts of a request that may differ between sites."""


@dataclass(frozen=True)
class Terms:
    """What a secure sum is about; JSON values only."""

    session: str
    """A name that the coordinator has never used before."""
    run: str
    round: int
    sites: list[str]
    """The sites that are asked to take part."""
    weights: list[float]
    """The weights of these sites in the mean, not normalised."""
    threshold: int
    """The fewest sites in the sum, and the number of shares that recover a secret."""
    ranges: str
    """The ranges of the numbers: see `fedcso.federation.secure.fixed_point`."""
    parts: dict[str, str]
    """Digests of the parts of the model that sites are sent."""
    settings: str
    """The digest of the settings of the run."""

    def __post_init__(self) -> None:
        texts = [self.session, self.run, self.settings, *self.sites, *self.parts, *self.parts.values()]
        whole = all(type(number) is int for number in (self.round, self.threshold))
        if not all(isinstance(text, str) for text in texts) or not whole:
            raise Unreadable("the terms of the sum have values of other types")
        if len(set(self.sites)) < len(self.sites) or len(self.sites) != len(self.weights):
            raise Unreadable("the terms of the sum name a site twice, or have no weight for each site")
        if not all(is_number(weight) and 0 < weight < float("inf") for weight in self.weights):
            raise Unreadable("the terms of the sum have weights that are not positive")
        Ranges.parse(self.ranges)

    @classmethod
    def read(cls, words: Any) -> "Terms":
        """Read terms from JSON values; raise `Unreadable` if they are malformed."""
        try:
            return cls(**words)
        except (TypeError, AttributeError, ValueError) as error:
            raise Unreadable("the terms of the sum can't be read") from error

    def words(self) -> dict[str, Any]:
        """Return the terms as JSON values."""
        return asdict(self)

    def digest(self) -> str:
        """Return what identifies the terms."""
        return digest_of(self.words())

    def share(self, site: str) -> float:
        """Return the weight of a site as a fraction of the largest."""
        return self.weights[self.sites.index(site)] / max(self.weights)

    def total(self, sites: Iterable[str]) -> float:
        """Return the sum of the weights of some sites, in the order of the terms, as fractions of the largest."""
        some = set(sites)
        return sum(self.share(site) for site in self.sites if site in some)


def digest_of(words: Any) -> str:
    """Return the digest of JSON values."""
    return hashlib.sha256(canonical(words)).hexdigest()


def canonical(words: Any) -> bytes:
    """Return JSON values as bytes, always the same."""
    return json.dumps(words, sort_keys=True, separators=(",", ":")).encode()


def settings_digest(order: Order) -> str:
    """Return the digest of all parts of a request that must be the same at all sites."""
    return digest_of({name: value for name, value in order.words().items() if name not in OF_ONE_SITE})


def digest_parts(*messages: Mapping[str, Tree]) -> dict[str, str]:
    """Return the digest of each part of the messages to sites; a part of several messages must be the same in all."""
    found: dict[str, str] = {}
    for message in messages:
        for name, part in message.items():
            if found.setdefault(name, _digest_tree(part)) != _digest_tree(part):
                raise Unreadable(f"sites are sent different values of {name}")
    return found


def _digest_tree(tree: Tree) -> str:
    digest = hashlib.sha256()
    for path, leaf in named_leaves(tree):
        digest.update(canonical([path, str(leaf.dtype), list(leaf.shape)]))
        digest.update(as_bytes(leaf))
    return digest.hexdigest()
