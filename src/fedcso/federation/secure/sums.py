"""Masked updates: which of them can be in a sum, and the mean that a sum gives without its masks."""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from fedcso.core.costs import Costs
from fedcso.core.packing import DTYPES
from fedcso.core.tree import Tree, leaves, nbytes, unflatten_like
from fedcso.engines.client import Reply
from fedcso.engines.server import Gathered, Listed, Outcome
from fedcso.federation.acceptance import Expected, of_wrong_shape, read_reply, signature
from fedcso.federation.aggregation import Aggregation, with_noise
from fedcso.federation.attempt import Attempt
from fedcso.federation.secure.fixed_point import Ranges, decode, flatten, unflatten
from fedcso.federation.secure.terms import Terms
from fedcso.federation.wire import Unreadable


@dataclass(frozen=True)
class Masked:
    """A masked update: what it says, the form of what is behind the masks, and the masked numbers."""

    reply: Reply
    form: Tree
    """Tensors without content, of the types and shapes of what was masked."""
    numbers: Tree
    masked_with: frozenset[str]
    """The sites whose masks are in it, this one included."""

    @classmethod
    def read(cls, said: Mapping[str, Any], tree: Tree, expected: Expected) -> "Masked":
        """Read an answer; raise `Unreadable` if it is not a masked update."""
        masked = leaves(tree)
        if any(leaf.dtype != torch.int64 for leaf in masked):
            raise Unreadable("its masked update has numbers of another type")
        try:
            kinds = [DTYPES[kind] for kind in said["dtypes"]]
            forms = [torch.empty(m.shape, dtype=kind, device="meta") for m, kind in zip(masked, kinds, strict=True)]
            form = unflatten_like(tree, forms)
            scalars = [part.shape for part in (form["scalars"]["loss"], form["scalars"]["told"])]
            output = {"output": form["output"]["x"]} if "output" in form else {}
            shared = {"shared": form["shared"], **output}
            masked_with = frozenset(map(str, said["masked_with"]))
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise Unreadable("its masked update is incomplete") from error
        if any(scalars) or len(form) != len(shared) + 1 or len(form["scalars"]) != len(scalars):
            raise Unreadable("its masked update has other parts than requested")
        reply = read_reply({**said, "train_loss": None}, shared, expected)
        costs = reply.costs + Costs(bytes_up=nbytes(tree) - nbytes(form["shared"]))
        return cls(reply._replace(costs=costs), form, tree, masked_with)


def accept_masked(found: Mapping[str, Masked], expected: Expected) -> tuple[dict[str, Masked], dict[str, str]]:
    """Return the masked updates that can be summed, and why others can't: those of other forms than most have.

    Those that are left have the masks of the same sites.
    """
    sites = list(found)
    strange = of_wrong_shape({n: found[site].reply for n, site in enumerate(sites)}, expected)
    faults = {sites[n]: reason for n, reason in strange.items()}
    forms = {site: signature(found[site].form) for site in sites if site not in faults}
    usual = Counter(forms.values()).most_common(1)
    faults |= {site: "its update has other shapes than requested" for site in forms if forms[site] != usual[0][0]}
    views = {site: found[site].masked_with for site in sites if site not in faults}
    circle = Counter(views.values()).most_common(1)
    faults |= {site: "it can't open the shares of all sites" for site in views if views[site] != circle[0][0]}
    faults |= {site: "other sites can't open its shares" for site in views if site not in circle[0][0]}
    return {site: found[site] for site in sites if site not in faults}, faults


def add_up(masked: Mapping[str, Masked]) -> np.ndarray:
    """Return the sum of masked updates modulo 2^64."""
    first, *others = (flatten(one.numbers) for one in masked.values())
    for vector in others:
        first = first + vector
    return first


def close_sum(
    attempt: Attempt,
    terms: Terms,
    masked: Mapping[str, Masked],
    total: np.ndarray,
    faults: Mapping[int, str],
    aggregation: Aggregation,
) -> Gathered:
    """Return the result of a round from the sum of the updates; raise `ImpossibleSum` if it can't be one.

    Args:
        attempt: the attempt at the round
        terms: the terms of the sum
        masked: the updates in the sum, by site
        total: the sum without masks
        faults: the clients that are left out, with reasons
        aggregation: the noise to be added to the mean
    """
    form, ranges, count = next(iter(masked.values())).form, Ranges.parse(terms.ranges), len(terms.sites)
    dtypes = [leaf.dtype for leaf in leaves(form)]
    mean = decode(unflatten(form, total), dtypes, ranges, count, terms.total(masked), len(masked))
    opened, job = attempt.opened, attempt.job
    message = {name: _shaped_like(opened.example.get(name, ()), part) for name, part in mean["shared"].items()}
    if aggregation.noise:
        message = with_noise(message, aggregation.deviation(len(masked)))
    told = float(mean["scalars"]["told"])
    outcome = Outcome(
        attempt.participants,
        attempt.dropped(faults),
        costs=sum((one.reply.costs for one in masked.values()), Costs()),
        train_loss=float(mean["scalars"]["loss"]) / told if told else math.nan,
        output=_shaped_like(opened.start["x"], mean["output"]["x"]) if "output" in mean else None,
        receivers=len(attempt.orders),
        known=sum(attempt.known.values()),
    )
    return Gathered(Listed([message], [1.0]), len(masked) / len(job.able), [outcome])


def _shaped_like(known: Tree, part: Tree) -> Tree:
    """Return a part in the coordinator's own containers; what it has never seen keeps those of the sites."""
    return unflatten_like(known, leaves(part)) if leaves(known) else part
