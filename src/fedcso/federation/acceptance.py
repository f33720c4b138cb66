"""Which answers may count: readable, of the right shapes, finite, and not beyond all measure.

What the server knows itself (rounds, bytes, who took part) is never taken from an answer. What only a site can know
(samples, gradients, losses, seconds) must be possible.
"""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fedcso.core.costs import Costs
from fedcso.core.errors import is_number
from fedcso.core.tree import Tree, is_finite, named_leaves, nbytes
from fedcso.engines.client import Reply
from fedcso.engines.server import Opened
from fedcso.federation.aggregation import update_norm
from fedcso.federation.exchange import Arrival
from fedcso.federation.wire import Unreadable, unpack

Signature = tuple[Any, ...]

REPORTED = ("outer_samples", "inner_samples", "gradients")
"""The counts that a site reports."""

AT_MOST = 8
"""Times Σ_t b·m that a count may be: multilevel estimators draw more than b, some methods look at a batch twice."""


@dataclass(frozen=True)
class Expected:
    """What an answer to a round's order must be like."""

    opened: Opened
    output: bool
    """Whether the model after the output step was asked for."""
    outlier: float
    """How many times longer than the median site's an update may be; 0 for any."""
    seconds: float
    """How long an answer was waited for."""

    @property
    def most(self) -> int:
        """The largest count that the plan allows."""
        steps, plan, algorithm = self.opened.round.steps, self.opened.job.plan, self.opened.job.algorithm
        return AT_MOST * plan.inner_batch * sum(algorithm.outer_batch(t, plan) for t in steps)


def accepted(
    arrivals: Mapping[int, Arrival], expected: Expected
) -> tuple[dict[int, Reply], dict[int, dict[str, Any]], dict[int, str]]:
    """By client, ascending: the answers that count, what sites said beside them, and why the others don't count."""
    replies: dict[int, Reply] = {}
    said: dict[int, dict[str, Any]] = {}
    faults: dict[int, str] = {}
    for client, arrival in sorted(arrivals.items()):
        if arrival.content is None:
            faults[client] = arrival.reason
            continue
        try:
            said[client], tree = unpack(arrival.content)
            if "refused" in said[client]:
                faults[client] = str(said[client]["refused"])
            else:
                replies[client] = _reply(said[client], tree, expected)
        except Unreadable as error:
            faults[client] = str(error)
    for find in (_of_wrong_shape, _not_finite, _too_large):
        faults |= find(replies, expected)
        replies = {client: reply for client, reply in replies.items() if client not in faults}
    return replies, said, faults


def _reply(said: dict[str, Any], tree: Tree, expected: Expected) -> Reply:
    try:
        message, output = dict(tree["shared"]), tree.get("output")
        counts = {name: said["costs"][name] for name in REPORTED}
        loss, seconds = said["train_loss"], said["seconds"]
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise Unreadable(f"its answer lacks something ({type(error).__name__})") from error
    if (output is not None) != expected.output:
        raise Unreadable("its answer lacks the model of the output step, or has one that was not asked for")
    if not all(type(count) is int and 0 <= count <= expected.most for count in counts.values()):
        raise Unreadable("its counts of samples and gradients are impossible")
    if not (is_number(loss) and math.isfinite(loss)):
        raise Unreadable("its training loss is not a finite number")
    if not (is_number(seconds) and 0 <= seconds <= expected.seconds):
        raise Unreadable("the seconds it says it took are impossible")
    return Reply(message, {}, {}, Costs(**counts, bytes_up=nbytes(message)), float(loss), output)


def signature(tree: Tree) -> Signature:
    """Paths, shapes and types of all leaves."""
    return tuple((path, tuple(leaf.shape), str(leaf.dtype)) for path, leaf in named_leaves(tree))


def _of_wrong_shape(replies: Mapping[int, Reply], expected: Expected) -> dict[int, str]:
    """Messages unlike the one asked for; what the server has nothing of yet (an empty part) must be as most have it."""
    asked = {name: signature(part) for name, part in expected.opened.example.items()}
    shapes = {
        client: {name: signature(part) for name, part in reply.message.items()} for client, reply in replies.items()
    }
    for name, own in asked.items():
        if not own and (common := Counter(shape.get(name) for shape in shapes.values()).most_common(1)):
            asked[name] = common[0][0] or ()
    output = {client: signature(reply.output) for client, reply in replies.items() if reply.output is not None}
    x = signature(expected.opened.start["x"])
    return {
        client: "its update has other shapes than what was asked for"
        for client, shape in shapes.items()
        if shape != asked or output.get(client, x) != x
    }


def _not_finite(replies: Mapping[int, Reply], expected: Expected) -> dict[int, str]:
    """Updates and models that hold an infinity or a NaN."""
    read = expected.opened.job.codec.read
    return {
        client: "its update is not finite"
        for client, reply in replies.items()
        if not is_finite([read(reply.message), [] if reply.output is None else reply.output])
    }


def _too_large(replies: Mapping[int, Reply], expected: Expected) -> dict[int, str]:
    """Updates many times longer than that of the (lower) median site."""
    opened, outlier = expected.opened, expected.outlier
    lengths = {
        client: update_norm(opened.start, opened.job.codec.read(reply.message)) for client, reply in replies.items()
    }
    usual = sorted(lengths.values())[(len(lengths) - 1) // 2] if lengths else 0.0
    if not outlier or not usual:
        return {}
    return {
        client: f"its update is {length / usual:.0f} times as long as the median site's (outlier = {outlier:g})"
        for client, length in lengths.items()
        if not length <= outlier * usual
    }
