"""Decide which answers are used: readable, with the right shapes, finite, and not outliers.

What the server knows itself (rounds, bytes, who took part) is never taken from an answer. What only a site can know
(samples, gradients, losses, seconds) must be possible.
"""

import math
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fedcso.core.costs import Costs
from fedcso.core.errors import FedcsoError, is_number
from fedcso.core.tree import Tree, is_finite, named_leaves, nbytes
from fedcso.engines.client import Reply
from fedcso.engines.server import Opened
from fedcso.federation.aggregation import update_norm
from fedcso.federation.exchange import Response
from fedcso.federation.wire import Unreadable, in_a_line, unpack

Signature = tuple[Any, ...]

REPORTED = ("outer_samples", "inner_samples", "gradients")
"""The counts that a site reports."""

AT_MOST = 8
"""The largest count as a multiple of Σ_t b·m: multilevel estimators draw more, and some methods use a batch twice."""


@dataclass(frozen=True)
class Expected:
    """The requirements for an answer."""

    opened: Opened
    output: bool
    """Whether the model after the output step was requested."""
    outlier: float
    """The largest norm of an update as a multiple of the median site's; 0 for no limit."""
    seconds: float
    """The longest possible duration of a round."""

    @property
    def most(self) -> int:
        """The largest count that the plan allows."""
        steps, plan, algorithm = self.opened.round.steps, self.opened.job.plan, self.opened.job.algorithm
        return AT_MOST * plan.inner_batch * sum(algorithm.outer_batch(t, plan) for t in steps)


def content_of(arrival: Response) -> tuple[dict[str, Any], Tree]:
    """Return the JSON values and the tree of an answer; raise with the reason if there is none or the site refused."""
    if arrival.content is None:
        raise FedcsoError(arrival.reason)
    said, tree = unpack(arrival.content)
    if "refused" in said:
        raise FedcsoError(in_a_line(said["refused"]))
    return said, tree


def accepted(
    arrivals: Mapping[int, Response], expected: Expected
) -> tuple[dict[int, Reply], dict[int, dict[str, Any]], dict[int, str]]:
    """Return, by client: the accepted answers, what sites said besides, and the reasons for rejecting the others."""
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
                faults[client] = in_a_line(said[client]["refused"])
            else:
                replies[client] = read_reply(said[client], tree, expected)
        except Unreadable as error:
            faults[client] = str(error)
    replies = _with_losses(replies)
    for find in (of_wrong_shape, _not_finite, _too_large):
        faults |= find(replies, expected)
        replies = {client: reply for client, reply in replies.items() if client not in faults}
    return replies, said, faults


def read_reply(said: dict[str, Any], tree: Tree, expected: Expected) -> Reply:
    """Return an answer to `train`; raise `Unreadable` if it lacks something or says what can't be."""
    if not (isinstance(tree, dict) and isinstance(tree.get("shared"), dict)):
        raise Unreadable("its answer is incomplete (no update)")
    try:
        message, output = tree["shared"], tree.get("output")
        counts = {name: said["costs"][name] for name in REPORTED}
        loss, seconds = said["train_loss"], said["seconds"]
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise Unreadable(f"its answer is incomplete ({type(error).__name__})") from error
    if (output is not None) != expected.output:
        raise Unreadable("its answer lacks the model of the output step, or has one that was not requested")
    if not all(type(count) is int and 0 <= count <= expected.most for count in counts.values()):
        raise Unreadable("its counts of samples and gradients are impossible")
    if loss is not None and not (is_number(loss) and abs(loss) <= sys.float_info.max):
        raise Unreadable("its training loss is not a finite number")
    if not (is_number(seconds) and 0 <= seconds <= expected.seconds):
        raise Unreadable("the duration it reports is impossible")
    costs = Costs(**counts, bytes_up=nbytes(message))
    return Reply(message, {}, {}, costs, math.nan if loss is None else float(loss), output)


def _with_losses(replies: Mapping[int, Reply]) -> dict[int, Reply]:
    """Let a site that withholds its training loss count with the mean of the others' losses, if there are any."""
    told = [reply.train_loss for reply in replies.values() if not math.isnan(reply.train_loss)]
    mean = sum(told) / len(told) if told else math.nan
    return {
        n: reply._replace(train_loss=mean) if math.isnan(reply.train_loss) else reply for n, reply in replies.items()
    }


def signature(tree: Tree) -> Signature:
    """Return paths, shapes and types of all leaves."""
    return tuple((path, tuple(leaf.shape), str(leaf.dtype)) for path, leaf in named_leaves(tree))


def of_wrong_shape(replies: Mapping[int, Reply], expected: Expected) -> dict[int, str]:
    """Reject messages with unexpected shapes; parts still empty at the server must be as most sites have them."""
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
        client: "its update has other shapes than requested"
        for client, shape in shapes.items()
        if shape != asked or output.get(client, x) != x
    }


def _not_finite(replies: Mapping[int, Reply], expected: Expected) -> dict[int, str]:
    """Reject updates and models that contain infinities or NaN."""
    read = expected.opened.job.codec.read
    return {
        client: "its update is not finite"
        for client, reply in replies.items()
        if not is_finite([read(reply.message), [] if reply.output is None else reply.output])
    }


def _too_large(replies: Mapping[int, Reply], expected: Expected) -> dict[int, str]:
    """Reject updates whose norm is many times that of the (lower) median site; entries for pools do not count."""
    opened, outlier = expected.opened, expected.outlier
    codec, algorithm = opened.job.codec, opened.job.algorithm
    lengths = {
        client: update_norm(opened.start, codec.read_averaged(reply.message, algorithm))
        for client, reply in replies.items()
    }
    usual = sorted(lengths.values())[(len(lengths) - 1) // 2] if lengths else 0.0
    if not outlier or not usual:
        return {}
    return {
        client: f"its update is {length / usual:.0f} times as long as the median site's (outlier = {outlier:g})"
        for client, length in lengths.items()
        if not length <= outlier * usual
    }
