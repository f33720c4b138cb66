"""The server's side of a round: what clients sent becomes its next message."""

from collections.abc import Callable, Sequence

import numpy as np

from fedcso.client import Reply
from fedcso.engine import Job, Report, communication
from fedcso.errors import Fault
from fedcso.tree import Tree, average

Combine = Callable[[dict[str, Tree], Sequence[dict[str, Tree]], Sequence[float]], dict[str, Tree]]
"""The server's last message, what clients sent and how much each counts, as one."""


def mean(before: dict[str, Tree], sent: Sequence[dict[str, Tree]], weights: Sequence[float]) -> dict[str, Tree]:
    """The weighted mean, as in the paper."""
    combined: dict[str, Tree] = average(sent, weights)
    return combined


def conclude(
    job: Job,
    round: int,
    before: dict[str, Tree],
    participants: list[int],
    replies: dict[int, Reply],
    dropped: Sequence[Fault],
    combine: Combine = mean,
) -> Report:
    """The report of a round, whose `shared` is what the server sends next; replies are by client, ascending."""
    weights = job.weights(list(replies))
    combined = combine(before, [reply.shared for reply in replies.values()], weights)
    after = job.algorithm.aggregate(before, combined, len(replies) / len(job.able))
    messages = communication(job, round, before, combined, participants, len(replies))
    outputs = [reply.output for reply in replies.values()]
    return Report(
        shared=after,
        participants=participants,
        dropped=dropped,
        costs=sum((reply.costs for reply in replies.values()), messages),
        train_loss=float(np.average([reply.train_loss for reply in replies.values()], weights=weights)),
        output=None if outputs[0] is None else average(outputs, weights),
    )
