"""A site's part in a secure sum, as functions from what it knows and is told to what it knows then and says.

With the pairwise keys k_ij that sites i and j agree on and the seed b_i of site i alone, site i sends

    y_i = q_i + mask(b_i) + Σ_{j > i} mask(k_ij) − Σ_{j < i} mask(k_ij)        modulo 2^64

In the sum over all sites the pairwise masks cancel. The seeds of the sites in the sum, and for a site that dropped out
the key that its pairwise masks come from, are recovered from Shamir shares. A site never reveals shares of both.
"""

import hashlib
import json
import logging
import os
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from cryptography.fernet import InvalidToken
from flwr.common.secure_aggregation.crypto.shamir import create_shares
from flwr.common.secure_aggregation.crypto.symmetric_encryption import decrypt, encrypt, generate_shared_key
from flwr.supercore.primitives.asymmetric import generate_key_pairs

from fedcso.federation.secure.curve import read_point, read_secret, write_point, write_secret
from fedcso.federation.secure.identity import Identity, not_signed
from fedcso.federation.secure.masks import KEY_BYTES, mask, pair_key, pair_mask
from fedcso.federation.secure.terms import Terms, canonical, digest_of
from fedcso.federation.sovereignty.policy import Refused

log = logging.getLogger("fedcso")


@dataclass(frozen=True)
class Party:
    """What a site knows of a sum that is under way; JSON values only, so that it can be kept in a file."""

    site: str
    terms: dict[str, Any]
    box_secret: str
    pair_secret: str
    seed: str
    keys: dict[str, dict[str, str]] = field(default_factory=dict)
    """The public keys of the sites that take part: `box` to encrypt shares to, `pair` for masks."""
    own_shares: list[str] = field(default_factory=list)
    """This site's own shares of its seed and of its pair secret."""
    shares: dict[str, list[str]] = field(default_factory=dict)
    """Of each site whose masks are in this site's update, the shares of its seed and of its pair secret."""
    survivors: list[str] = field(default_factory=list)
    """The sites in the sum, as this site has confirmed them."""

    def words(self) -> dict[str, Any]:
        """Return all this as JSON values."""
        return asdict(self)

    @property
    def agreed(self) -> Terms:
        """The terms of the sum."""
        return Terms.read(self.terms)

    def position(self) -> dict[str, Any]:
        """Return the statement that sites sign to confirm the same list of survivors."""
        told = {"terms": self.agreed.digest(), "keys": digest_of(self.keys), "masked by": sorted(self.shares)}
        return told | {"sum over": self.survivors}


def require_enough(sites: Any, terms: Terms, among: Any) -> None:
    """Raise `Refused` unless sites are at least as many as the threshold, and among some others."""
    if not isinstance(sites, list | dict) or not set(sites) <= set(among) or len(set(sites)) < len(sites):
        raise Refused("a list of sites in the sum names others than those that take part")
    if len(sites) < terms.threshold:
        raise Refused(f"a sum over {len(sites)} sites was asked for, fewer than the threshold of {terms.threshold}")


def begin(terms: Terms, identity: Identity) -> tuple[Party, dict[str, str]]:
    """Make fresh keys for a sum, and sign them together with the terms; raise `Refused` if the terms are not safe."""
    require_safe(terms, identity.name)
    (box, box_point), (pair, pair_point) = generate_key_pairs(), generate_key_pairs()
    seed = os.urandom(KEY_BYTES).hex()
    party = Party(identity.name, terms.words(), write_secret(box), write_secret(pair), seed)
    points = {"box": write_point(box_point), "pair": write_point(pair_point)}
    return party, points | {"signature": identity.sign({"terms": terms.digest(), **points})}


def require_safe(terms: Terms, site: str) -> None:
    """Raise `Refused` unless this site takes part, and the threshold is more than half of the sites but not above."""
    if site not in terms.sites:
        raise Refused("a sum was asked for in which this site does not take part")
    if not max(2, len(terms.sites) // 2 + 1) <= terms.threshold <= len(terms.sites):
        raise Refused(
            f"a threshold of {terms.threshold} for {len(terms.sites)} sites was asked for: it must be at least 2, and "
            "more than half of the sites, or both secrets of a site could be recovered"
        )


def share(party: Party, identity: Identity, keys: Any) -> tuple[Party, dict[str, Any]]:
    """Return encrypted shares of this site's secrets for the sites whose keys are signed, with commitments to them."""
    terms = party.agreed
    require_enough(keys, terms, terms.sites)
    own = {"box": write_point(read_secret(party.box_secret).public_key())}
    own |= {"pair": write_point(read_secret(party.pair_secret).public_key())}
    if keys.get(party.site, {}) != own | {"signature": keys.get(party.site, {}).get("signature")}:
        raise Refused("the keys are not those of this sum: a message of another round or session")
    points = {site: {name: str(keys[site][name]) for name in own} for site in sorted(keys)}
    digest = terms.digest()
    known = {
        site: some
        for site, some in points.items()
        if identity.has_signed(site, {"terms": digest, **some}, keys[site]["signature"])
    }
    if unknown := [site for site in keys if site not in known]:
        log.warning("a sum goes on without site %s: %s", unknown[0], not_signed(unknown[0]))
    require_enough(known, terms, terms.sites)
    sites = list(known)
    dealt = zip(*(create_shares(secret, terms.threshold, len(sites)) for secret in _secrets(party)), strict=True)
    shares = {site: [part.hex() for part in parts] for site, parts in zip(sites, dealt, strict=True)}
    boxes = {
        site: encrypt(_box_key(party, known[site]["box"]), _sealed(party, site, shares[site])).hex()
        for site in sites
        if site != party.site
    }
    commitments = {site: [commit(part) for part in shares[site]] for site in sites}
    after = replace(party, keys=known, own_shares=shares[party.site])
    return after, {"boxes": boxes, "commitments": commitments, "seed": commit(party.seed)}


def receive(party: Party, boxes: Any) -> Party:
    """Open the shares that the other sites have sent; without those that are not what the senders have committed to."""
    terms = party.agreed
    require_enough([*boxes, party.site], terms, party.keys)
    opened = {party.site: party.own_shares}
    for site in sorted(boxes):
        try:
            token, commitments = bytes.fromhex(boxes[site]["box"]), list(boxes[site]["commitments"])
            shares = _opened(party, site, decrypt(_box_key(party, party.keys[site]["box"]), token))
            fits = [commit(part) for part in shares] == commitments
        except (InvalidToken, LookupError, TypeError, ValueError):
            fits = False
        if fits:
            opened[site] = shares
        else:
            log.warning("a sum goes on without site %s: its shares are not those that it has committed to", site)
    require_enough(opened, terms, party.keys)
    return replace(party, shares=opened)


def masked(party: Party, update: np.ndarray) -> np.ndarray:
    """Return an update with this site's masks; the update is a vector modulo 2^64."""
    terms, pair = party.agreed, read_secret(party.pair_secret)
    total: np.ndarray = update + mask(bytes.fromhex(party.seed), len(update))
    for site in party.shares:
        if site != party.site:
            key = pair_key(pair, read_point(party.keys[site]["pair"]), terms.digest())
            total = total + pair_mask(key, len(update), first=party.site < site)
    return total


def confirm(party: Party, identity: Identity, survivors: Any) -> tuple[Party, dict[str, str]]:
    """Sign the list of the sites in the sum."""
    require_enough(survivors, party.agreed, party.shares)
    if party.site not in survivors:
        raise Refused("a sum was asked for without this site, whose masked update has left")
    party = replace(party, survivors=sorted(survivors))
    return party, {"signature": identity.sign(party.position())}


def reveal(party: Party, identity: Identity, signatures: Any) -> dict[str, str]:
    """Check that enough sites have signed the same list, and return the shares that undo the masks in its sum.

    Of each site in the sum it is the share of the seed, of each that dropped out the share of the pair secret.
    """
    require_enough(signatures, party.agreed, party.survivors)
    position = party.position()
    signed = [site for site in signatures if identity.has_signed(site, position, signatures[site])]
    if len(signed) < party.agreed.threshold:
        raise Refused(not_signed(next(site for site in signatures if site not in signed)))
    return {site: parts[0] if site in party.survivors else parts[1] for site, parts in party.shares.items()}


def commit(secret: str) -> str:
    """Return a commitment to a random secret."""
    return hashlib.sha256(bytes.fromhex(secret)).hexdigest()


def _secrets(party: Party) -> tuple[bytes, bytes]:
    return bytes.fromhex(party.seed), bytes.fromhex(party.pair_secret)


def _box_key(party: Party, point: str) -> bytes:
    return generate_shared_key(read_secret(party.box_secret), read_point(point))


def _sealed(party: Party, to: str, shares: list[str]) -> bytes:
    return canonical({"from": party.site, "to": to, "terms": party.agreed.digest(), "shares": shares})


def _opened(party: Party, site: str, sealed: bytes) -> list[str]:
    """Return the shares in a message from a site to this one; raise `ValueError` if it is from another round."""
    words = json.loads(sealed)
    shares = [str(part) for part in words.pop("shares")]
    if words != {"from": site, "to": party.site, "terms": party.agreed.digest()}:
        raise ValueError
    return shares
