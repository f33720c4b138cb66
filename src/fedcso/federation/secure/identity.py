"""Who is who among sites: each site signs with its registered key, and knows the public keys of the others.

The public keys of the other sites are files in the site's folder, `peers/NAME.pub`, which its people put there. The
coordinator has no way to change them, so it can't pass keys of its own off as those of a site.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_ssh_private_key, load_ssh_public_key
from flwr.supercore.primitives.asymmetric import sign_message, verify_signature

from fedcso.federation.secure.terms import canonical
from fedcso.federation.sovereignty.peers import PEERS
from fedcso.federation.sovereignty.policy import Refused

PURPOSE = "fedcso secure aggregation 1"
"""What signatures are for: no signature of anything else is taken for one of these."""


@dataclass(frozen=True)
class Identity:
    """A site's key to sign with, and the public keys of all sites that it knows."""

    name: str
    key: ec.EllipticCurvePrivateKey
    peers: Mapping[str, ec.EllipticCurvePublicKey]

    @classmethod
    def read(cls, name: str, folder: Path, key: str, sites: list[str]) -> "Identity":
        """Read a site's keys; raise `Refused` if one is missing, or if its own is not the one the others know."""
        if not key:
            raise Refused("secure aggregation needs this site's key: start the site with --key")
        if strange := [site for site in sites if Path(site).name != site]:
            raise Refused(f"{strange[0]!r} is not the name of a site")
        own = _load(Path(key), lambda content: load_ssh_private_key(content, None), ec.EllipticCurvePrivateKey)
        peers = {
            site: _load(folder / PEERS / f"{site}.pub", load_ssh_public_key, ec.EllipticCurvePublicKey)
            for site in sites
            if site != name
        }
        return cls(name, own, peers | {name: own.public_key()})

    def sign(self, statement: dict[str, Any]) -> str:
        """Return the signature of a statement."""
        return sign_message(self.key, _signed(self.name, statement)).hex()

    def has_signed(self, site: str, statement: dict[str, Any], signature: Any) -> bool:
        """Return whether a site has signed a statement."""
        try:
            return verify_signature(self.peers[site], _signed(site, statement), bytes.fromhex(signature))
        except (LookupError, TypeError, ValueError):
            return False


def not_signed(site: str) -> str:
    """Return what it may mean that a site has not signed what this site was told."""
    return (
        f"site {site} has not signed what this site was told: it sends something else, the coordinator tells sites "
        f"different things, or {PEERS}/{site}.pub is not the key of site {site}"
    )


def _signed(site: str, statement: dict[str, Any]) -> bytes:
    return canonical({"purpose": PURPOSE, "site": site, **statement})


def _load(path: Path, load: Any, kind: type) -> Any:
    try:
        key = load(path.read_bytes())
    except FileNotFoundError:
        raise Refused(
            f"{path} is missing: put the public key of each other site there, and compare it with that site's people"
        ) from None
    except (OSError, ValueError, TypeError) as error:
        raise Refused(f"the key {path} can't be read ({type(error).__name__})") from error
    if not isinstance(key, kind):
        raise Refused(f"the key {path} is not an ECDSA key: create one with ssh-keygen -t ecdsa -b 384")
    return key
