"""What a site answers to the messages of a secure sum; the names of the functions are those of the messages."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from fedcso.core.packing import NAMES
from fedcso.core.tree import Tree, named_leaves
from fedcso.federation.request import Order
from fedcso.federation.secure import party
from fedcso.federation.secure.fixed_point import Ranges, encode, flatten, unflatten
from fedcso.federation.secure.identity import Identity
from fedcso.federation.secure.keeping import Keeping
from fedcso.federation.secure.terms import Terms, digest_parts, settings_digest
from fedcso.federation.site import Site, SiteData
from fedcso.federation.sovereignty.policy import Refused
from fedcso.federation.training import train_on
from fedcso.federation.wire import Unreadable

Answer = tuple[dict[str, Any], Tree]


def secure_keys(order: Order, tree: Tree, site: Site, app: Path) -> Answer:
    """Make keys for a sum, and sign them and its terms."""
    terms, keeping = _told(order, site)
    keeping.require_new(terms)
    own, said = party.begin(terms, _identity(order, site))
    keeping.keep("secure_shares", own)
    return said, ()


def secure_shares(order: Order, tree: Tree, site: Site, app: Path) -> Answer:
    """Check the other sites' keys, and deal shares of this site's secrets to them."""
    terms, keeping = _told(order, site)
    own, said = party.share(keeping.take("secure_shares", terms), _identity(order, site), order.secure["keys"])
    keeping.keep("secure_update", own)
    return said, ()


def secure_update(order: Order, tree: Tree, site: Site, app: Path) -> Answer:
    """Train, and send the update masked; the training loss is masked, too."""
    terms, keeping = _told(order, site)
    own = party.receive(keeping.take("secure_update", terms), order.secure["boxes"])
    _require_same_model(terms, tree)
    holding = site.holding(order, app)
    _require_own_weight(terms, site, holding)
    words, sent = train_on(holding, order, tree, _clipping(site, order))
    ranges, count = Ranges.parse(terms.ranges), len(terms.sites)
    whole = summands(sent, words.pop("train_loss"), ranges)
    encoded = encode(whole, ranges, count, terms.share(site.name))
    hidden = unflatten(encoded, party.masked(own, flatten(encoded)))
    keeping.keep("secure_confirm", own)
    dtypes = [NAMES[leaf.dtype] for _, leaf in named_leaves(whole)]
    return words | {"dtypes": dtypes, "masked_with": sorted(own.shares)}, hidden


def secure_confirm(order: Order, tree: Tree, site: Site, app: Path) -> Answer:
    """Sign the list of the sites in the sum."""
    terms, keeping = _told(order, site)
    identity, survivors = _identity(order, site), order.secure["survivors"]
    own, said = party.confirm(keeping.take("secure_confirm", terms), identity, survivors)
    keeping.require_only_sum(own)
    keeping.keep("secure_reveal", own)
    return said, ()


def secure_reveal(order: Order, tree: Tree, site: Site, app: Path) -> Answer:
    """Send the shares that undo the masks in the sum over the sites that enough others have confirmed, too."""
    terms, keeping = _told(order, site)
    own = keeping.take("secure_reveal", terms)
    shares = party.reveal(own, _identity(order, site), order.secure["signatures"])
    keeping.note_revealed(own)
    return {"shares": shares}, ()


SECURE = (secure_keys, secure_shares, secure_update, secure_confirm, secure_reveal)
"""The answers in the order of the messages."""


def summands(sent: dict[str, Tree], loss: float | None, ranges: Ranges) -> Tree:
    """Return all that is summed: what a site would send otherwise, and its training loss if it tells it.

    A loss outside its range counts as not told, because no update should be lost for it.
    """
    told = loss is not None and abs(loss) <= ranges.of("loss")
    numbers = {"loss": float(loss or 0.0) if told else 0.0, "told": float(told)}
    scalars = {name: torch.tensor(number, dtype=torch.float64) for name, number in numbers.items()}
    output = {"output": {"x": sent["output"]}} if "output" in sent else {}
    return {"shared": sent["shared"], **output, "scalars": scalars}


def _told(order: Order, site: Site) -> tuple[Terms, Keeping]:
    """Return the terms in a message; raise unless they are for the run, the round and the settings that came along."""
    terms = Terms.read(order.secure.get("terms"))
    if (terms.run, terms.round, terms.settings) != (order.run, order.round, settings_digest(order)):
        raise Refused("the terms of the sum are not those of the message")
    return terms, Keeping(site.folder, order.run)


def _identity(order: Order, site: Site) -> Identity:
    return Identity.read(site.name, site.folder, site.key, Terms.read(order.secure["terms"]).sites)


def _require_same_model(terms: Terms, tree: Tree) -> None:
    """Raise `Refused` unless the model is the one that all sites have signed."""
    try:
        found = digest_parts(tree["shared"])
    except (LookupError, TypeError, AttributeError) as error:
        raise Unreadable("the message has no model") from error
    if not found.items() <= terms.parts.items():
        raise Refused("the model is not the one in the terms of the sum, which all sites have signed")


def _require_own_weight(terms: Terms, site: Site, holding: SiteData) -> None:
    """Raise `Refused` unless sites count alike, or this one by its size."""
    told, size = terms.weights[terms.sites.index(site.name)], holding.problem.size(holding.data)
    if min(terms.weights) < max(terms.weights) and told != size:
        raise Refused(f"sites count differently, and this one has the size {size}, but the terms of the sum say {told}")


def _clipping(site: Site, order: Order) -> Site:
    """Return the site with the coordinator's clip_update besides its own limit: whoever sums can't clip."""
    own, asked = site.policy.update, float(order.config.get("clip_update") or 0.0)
    clip = min([limit for limit in (own.clip, asked) if limit], default=0.0)
    return replace(site, policy=replace(site.policy, update=replace(own, clip=clip)))
