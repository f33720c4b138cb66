"""The server's side of a round: what clients sent becomes its next message."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from fedcso.core.costs import Costs
from fedcso.core.errors import Fault, FedcsoError
from fedcso.core.tree import Tree, average, nbytes
from fedcso.engines.client import Reply
from fedcso.engines.job import Job

Combine = Callable[[dict[str, Tree], Sequence[dict[str, Tree]], Sequence[float]], dict[str, Tree]]
"""The server's last message, what clients sent and how much each counts, as one."""


def mean(before: dict[str, Tree], sent: Sequence[dict[str, Tree]], weights: Sequence[float]) -> dict[str, Tree]:
    """The weighted mean, as in the paper."""
    combined: dict[str, Tree] = average(sent, weights)
    return combined


class Report(NamedTuple):
    """What happened in one round of one run."""

    shared: dict[str, Tree]
    """What the server holds after the round and sends next."""
    participants: list[int]
    dropped: Sequence[Fault]
    """Participants whose update was left out, and why."""
    costs: Costs
    """Of all participants together; what a dropped one had computed is not counted."""
    train_loss: float
    """Mean of the losses F̂ + r seen in the round's local steps."""
    output: Tree | None
    """x̄_t at the random output step, if it fell into this round."""


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


def communication(
    job: Job, round: int, before: dict[str, Tree], mean: dict[str, Tree], receivers: Sequence[int], senders: int
) -> Costs:
    """The costs of one round's messages: the server's last state down, replies like their mean up."""
    last, steps = set(job.participants(round - 1) if round else ()), job.plan.steps(round)
    informed = sum(client in last for client in receivers)
    down = [nbytes(job.algorithm.downlink(before, was_there, steps)) for was_there in (True, False)]
    return Costs(
        rounds=1,
        bytes_up=senders * nbytes(job.algorithm.uplink(mean)),
        bytes_down=informed * down[0] + (len(receivers) - informed) * down[1],
    )


def no_one_left(round: int, dropped: Sequence[Fault]) -> FedcsoError:
    """All clients of a round were dropped: there is nothing to average."""
    return FedcsoError(f"round {round}: every participating client was dropped; the first because of {dropped[0]}")
