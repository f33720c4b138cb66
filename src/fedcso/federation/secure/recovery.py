"""The coordinator's part in a secure sum: recover the secrets that undo the masks, and only in the sum.

Whoever deals shares has committed to each of them and to the seed; the public key is the commitment to a pair secret.
So a changed share is known to be the fault of the site that revealed it, and shares that fit their commitments but not
the secret are the fault of the site that dealt them.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from flwr.common.secure_aggregation.crypto.shamir import combine_shares

from fedcso.core.errors import FedcsoError
from fedcso.federation.secure.curve import read_point, read_secret, write_point
from fedcso.federation.secure.masks import mask, pair_key, pair_mask
from fedcso.federation.secure.party import commit
from fedcso.federation.secure.terms import Terms
from fedcso.federation.wire import Unreadable


class Unrecoverable(FedcsoError):
    """The masks of a sum can't be undone; nothing of it is used."""


@dataclass
class Ledger:
    """What the coordinator knows of a sum."""

    terms: Terms
    keys: dict[str, dict[str, str]] = field(default_factory=dict)
    """The public keys of the sites that answered the first message."""
    dealt: dict[str, dict[str, Any]] = field(default_factory=dict)
    """What the sites answered to the second: encrypted shares for each other site, and commitments."""
    survivors: list[str] = field(default_factory=list)
    """The sites whose masked updates are in the sum."""

    def add_keys(self, site: str, said: Mapping[str, Any]) -> None:
        """Note the public keys of a site; raise `Unreadable` if they are none."""
        try:
            keys = {name: str(said[name]) for name in ("box", "pair", "signature")}
            read_point(keys["box"]), read_point(keys["pair"])
        except (LookupError, ValueError) as error:
            raise Unreadable("its keys can't be read") from error
        self.keys[site] = keys

    def add_shares(self, site: str, said: Mapping[str, Any]) -> None:
        """Note the shares that a site has dealt; raise `Unreadable` if one is missing."""
        try:
            commitments = {other: [str(part) for part in parts] for other, parts in said["commitments"].items()}
            boxes = {other: str(said["boxes"][other]) for other in commitments if other != site}
            self.dealt[site] = {"boxes": boxes, "commitments": commitments, "seed": str(said["seed"])}
        except (LookupError, TypeError, AttributeError) as error:
            raise Unreadable("its shares are incomplete") from error

    def settle(self) -> dict[str, str]:
        """Go on with the sites that most sites have dealt shares to, and return why others are left out."""
        views = {site: frozenset(dealt["commitments"]) for site, dealt in self.dealt.items()}
        usual = Counter(views.values()).most_common(1)[0][0] if views else frozenset()
        strange = {site: "it deals shares to others than most sites do" for site in views if views[site] != usual}
        strange |= {site: "other sites do not accept its signature" for site in self.keys if site not in usual}
        self.dealt = {site: dealt for site, dealt in self.dealt.items() if site not in strange}
        return strange

    def restrict(self, sites: Collection[str]) -> None:
        """Go on with the sites whose masks are in the masked updates."""
        self.dealt = {site: dealt for site, dealt in self.dealt.items() if site in sites}

    def boxes_for(self, site: str) -> dict[str, dict[str, Any]]:
        """Return what the other sites have dealt to a site."""
        return {
            other: {"box": dealt["boxes"][site], "commitments": dealt["commitments"][site]}
            for other, dealt in self.dealt.items()
            if other != site
        }

    def check_revealed(self, site: str, said: Any) -> dict[str, str]:
        """Return the shares that a site has revealed; raise `Unreadable` if they are not those dealt to it."""
        shares = said if isinstance(said, dict) else {}
        for other in self.dealt:
            try:
                committed = self.dealt[other]["commitments"][site][self._which(other)]
                fits = commit(str(shares[other])) == committed
            except (LookupError, ValueError):
                fits = False
            if not fits:
                raise Unreadable(f"its share of a secret of site {other} is not the one that site {other} dealt")
        return {other: str(shares[other]) for other in self.dealt}

    def _which(self, site: str) -> int:
        return 0 if site in self.survivors else 1


def unmask(ledger: Ledger, total: np.ndarray, revealed: Mapping[str, Mapping[str, str]]) -> np.ndarray:
    """Return the sum of the survivors' updates without masks; raise `Unrecoverable` if that is not possible.

    Args:
        ledger: what the coordinator knows of the sum
        total: the sum of the masked updates
        revealed: by site, the shares that it has revealed, after `check_revealed`
    """
    if len(revealed) < ledger.terms.threshold:
        raise Unrecoverable(f"{len(revealed)} sites revealed shares, and {ledger.terms.threshold} are needed")
    length, chosen = len(total), sorted(revealed)[: ledger.terms.threshold]
    for site in ledger.dealt:
        secret = _combined(site, [revealed[one][site] for one in chosen])
        if site in ledger.survivors:
            _require_dealt_well(site, commit(secret) == ledger.dealt[site]["seed"])
            total = total - mask(bytes.fromhex(secret), length)
        else:
            total = total - _pair_masks(ledger, site, secret, length)
    return total


def _pair_masks(ledger: Ledger, site: str, secret: str, length: int) -> np.ndarray:
    """Return what the survivors have added for a site that dropped out."""
    try:
        key = read_secret(secret)
    except ValueError:
        key = None
    _require_dealt_well(site, key is not None and write_point(key.public_key()) == ledger.keys[site]["pair"])
    assert key is not None
    masks = np.zeros(length, np.uint64)
    for other in ledger.survivors:
        agreed = pair_key(key, read_point(ledger.keys[other]["pair"]), ledger.terms.digest())
        masks = masks + pair_mask(agreed, length, first=other < site)
    return masks


def _combined(site: str, shares: Sequence[str]) -> str:
    try:
        return combine_shares([bytes.fromhex(share) for share in shares]).hex()
    except (ValueError, IndexError) as error:
        raise Unrecoverable(_dealt_badly(site)) from error


def _require_dealt_well(site: str, fits: bool) -> None:
    if not fits:
        raise Unrecoverable(_dealt_badly(site))


def _dealt_badly(site: str) -> str:
    return f"the shares that site {site} dealt do not give the secret that it committed to"
