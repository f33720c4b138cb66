"""Which answers may count: readable, of the right shapes, finite, and not beyond all measure."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from fedcso.core.costs import Costs
from fedcso.core.tree import Tree, is_finite, named_leaves
from fedcso.engines.client import Reply
from fedcso.federation.aggregation import update_norm
from fedcso.federation.exchange import Arrival
from fedcso.federation.wire import Unreadable, unpack

Signature = tuple[Any, ...]


def accepted(
    arrivals: Mapping[int, Arrival], before: dict[str, Tree], outlier: float
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
                replies[client] = _reply(said[client], tree)
        except Unreadable as error:
            faults[client] = str(error)
    faults |= _of_wrong_shape(replies, before)
    replies = {client: reply for client, reply in replies.items() if client not in faults}
    faults |= {client: "its update is not finite" for client, reply in replies.items() if not _finite(reply)}
    replies = {client: reply for client, reply in replies.items() if client not in faults}
    faults |= _too_large(replies, before, outlier)
    return {client: reply for client, reply in replies.items() if client not in faults}, said, faults


def _reply(said: dict[str, Any], tree: Tree) -> Reply:
    try:
        costs = Costs(**{name: int(count) for name, count in said["costs"].items()})
        return Reply(dict(tree["shared"]), {}, costs, float(said["train_loss"]), tree.get("output"))
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise Unreadable(f"its answer lacks something ({type(error).__name__})") from error


def _finite(reply: Reply) -> bool:
    return is_finite([*reply.shared.values(), *([] if reply.output is None else [reply.output])])


def signature(tree: Tree) -> Signature:
    """Paths, shapes and types of all leaves."""
    return tuple((path, tuple(leaf.shape), str(leaf.dtype)) for path, leaf in named_leaves(tree))


def _of_wrong_shape(replies: Mapping[int, Reply], before: dict[str, Tree]) -> dict[int, str]:
    """Answers unlike what was sent; what the server has nothing of yet (an empty part) must be as most have it."""
    sent = {name: signature(part) for name, part in before.items()}
    shapes = {
        client: {name: signature(part) for name, part in reply.shared.items()} for client, reply in replies.items()
    }
    for name, own in sent.items():
        if not own and (common := Counter(shape.get(name) for shape in shapes.values()).most_common(1)):
            sent[name] = common[0][0] or ()
    output = {client: replies[client].output for client in replies}
    return {
        client: "its update has other shapes than what it was sent"
        for client, shape in shapes.items()
        if shape != sent or (output[client] is not None and signature(output[client]) != sent["x"])
    }


def _too_large(replies: Mapping[int, Reply], before: dict[str, Tree], outlier: float) -> dict[int, str]:
    """Updates many times longer than that of the (lower) median site."""
    lengths = {client: update_norm(before, reply.shared) for client, reply in replies.items()}
    usual = sorted(lengths.values())[(len(lengths) - 1) // 2] if lengths else 0.0
    if not outlier or not usual:
        return {}
    return {
        client: f"its update is {length / usual:.0f} times as long as the median site's (outlier = {outlier:g})"
        for client, length in lengths.items()
        if not length <= outlier * usual
    }
