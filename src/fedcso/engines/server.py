"""The server's side of a round, the same for all engines: it opens with messages to clients and closes with theirs.

An engine carries out what comes between, and says where the clients' messages are (`fedcso.core.codec.Messages`).
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from fedcso.core.algorithm import Server
from fedcso.core.codec import KEPT, Broadcast, Memory, Message, Messages, Round, full
from fedcso.core.costs import Costs
from fedcso.core.errors import Fault, FedcsoError
from fedcso.core.metric import Metric
from fedcso.core.tree import Tree, Weight, average, nbytes, split, without
from fedcso.engines.client import Reply
from fedcso.engines.job import Job

TRAIN_LOSS = Metric("train_loss", "training loss", higher_is_better=False, curve=False)
"""The mean of the losses F̂ + r seen in the round's local steps, over the clients that count."""

Combine = Callable[[Sequence[Tree], Sequence[float]], Tree]
"""What clients sent and how much each counts, as one."""


class Report(NamedTuple):
    """What happened in one round of one run."""

    shared: dict[str, Tree]
    """What the server shares after the round."""
    participants: list[int]
    dropped: Sequence[Fault]
    """Participants whose update was left out, and why."""
    costs: Costs
    """Of all participants together; what a dropped one had computed is not counted."""
    train_loss: float
    """Mean of the losses F̂ + r seen in the round's local steps."""
    output: Tree | None
    """x̄_t at the random output step, if it fell into this round."""


class Outcome(NamedTuple):
    """What the server learns of one run's round beside the messages."""

    participants: list[int]
    dropped: Sequence[Fault]
    costs: Costs
    """Of those whose update counts: their samples, gradients and messages."""
    train_loss: float
    output: Tree | None
    receivers: int
    """How many clients the server sent a message to."""
    known: int
    """How many of these have a memory, and were sent the message for such."""


class Gathered(NamedTuple):
    """All that came back in a round: of one run, or of many along leading axes."""

    messages: Messages
    fraction: Weight
    """The share of the clients whose messages count; a number, or one for each run."""
    outcomes: Sequence[Outcome | FedcsoError]
    """Of each run; or the reason why it broke off."""


@dataclass(frozen=True)
class Opened:
    """A round between the server's messages and the clients'; of one run, or of many along leading axes."""

    job: Job
    server: Server
    round: Round
    broadcast: Broadcast
    shape: tuple[int, ...] = ()
    """The leading axes of the server's leaves, where many runs are played together."""

    def message(self, known: bool) -> Message:
        """Return what is sent to a client with a memory, or to one without."""
        return self.broadcast.to_known if known else self.broadcast.to_new

    @cached_property
    def start(self) -> dict[str, Tree]:
        """What the local steps of a client without a memory start from."""
        return self._as_new[0]

    @cached_property
    def example(self) -> Message:
        """A message like those that clients send: that of a new client after no step at all."""
        shared, memory = self._as_new
        return self.job.codec.reply(shared, memory, self.round)[0]

    @cached_property
    def _as_new(self) -> tuple[dict[str, Tree], Memory]:
        return self.job.codec.receive(self.broadcast.to_new, None, self.round)

    def close(self, gathered: Gathered) -> tuple[Server, list[Report | FedcsoError]]:
        """Combine what clients sent, aggregate, count; return the server's new state and a report of each run."""
        combined = self.job.codec.combine(gathered.messages, self.server.shared, self.round)
        before = Server(self.server.shared, without(self.server.kept, KEPT))
        after = self.job.algorithm.aggregate(before, combined, gathered.fraction)
        memory = {KEPT: self.broadcast.memory} if self.broadcast.memory else {}
        to_known, to_new = (nbytes(self.message(known)) // math.prod(self.shape) for known in (True, False))

        def report(one: Outcome | FedcsoError, shared: dict[str, Tree]) -> Report | FedcsoError:
            if isinstance(one, FedcsoError):
                return one
            sent = Costs(rounds=1, bytes_down=one.known * to_known + (one.receivers - one.known) * to_new)
            return Report(shared, one.participants, one.dropped, one.costs + sent, one.train_loss, one.output)

        reports = map(report, gathered.outcomes, split(after.shared, self.shape))
        return Server(after.shared, after.kept | memory), list(reports)


def begin(job: Job, x: Tree) -> Server:
    """Return the server's state before the first round, if the method has one that can travel as the job says."""
    server: Any = job.algorithm.init(x)
    if not isinstance(server, Server):  # a user's own method may be written for an earlier version
        method = type(job.algorithm).__name__
        raise FedcsoError(f"{method}.init returned a {type(server).__name__}: return fedcso.Server(shared) instead")
    job.codec.check(job.algorithm, server.shared)
    return server


def open_round(job: Job, server: Server, number: int, shape: tuple[int, ...] = ()) -> Opened:
    """Encode the server's messages of a round."""
    round = job.work.round(number)
    broadcast = job.codec.broadcast(server.shared, server.kept.get(KEPT, {}), round)
    return Opened(job, server, round, broadcast, shape)


class Listed(NamedTuple):
    """Messages that are all here, one by one."""

    messages: Sequence[Message]
    weights: Sequence[float]
    combine: Combine = average

    def mean(self, read: Callable[[Message], Tree]) -> Tree:
        """Return the weighted mean, or another combination that stands for it."""
        return self.combine([read(message) for message in self.messages], self.weights)


def gather(
    job: Job,
    participants: list[int],
    replies: Mapping[int, Reply],
    dropped: Sequence[Fault],
    receivers: int,
    known: int,
    combine: Combine = average,
) -> Gathered:
    """Return what a round gave whose replies are all here, by client, ascending."""
    weights = job.weights(list(replies))
    outputs = [reply.output for reply in replies.values()]
    outcome = Outcome(
        participants,
        dropped,
        costs=sum((reply.costs for reply in replies.values()), Costs()),
        train_loss=float(np.average([reply.train_loss for reply in replies.values()], weights=weights)),
        output=None if outputs[0] is None else average(outputs, weights),
        receivers=receivers,
        known=known,
    )
    messages = Listed([reply.message for reply in replies.values()], weights, combine)
    return Gathered(messages, len(replies) / len(job.able), [outcome])


def fatal(job: Job, round: int, present: int, dropped: Sequence[Fault]) -> FedcsoError | None:
    """Return why a run can't go on after a round: a client broke and that is to stop it, or no one is left."""
    if dropped and job.plan.on_nonfinite == "stop":
        return dropped[0]
    if not present:
        return FedcsoError(f"round {round}: every participating client was dropped; the first because of {dropped[0]}")
    return None


def restored(job: Job, state: Mapping[str, Any], start: Server) -> Server:
    """Return the server's state in a snapshot; what one of an earlier version lacks is as at the start."""
    if "kept" in state:
        return Server(state["shared"], state["kept"])
    if job.codec != full:
        raise FedcsoError(
            "this run was begun by an earlier version of fedcso, which kept what send_u needs in another form, "
            "so it can't be resumed: start it again"
        )
    return Server(state["shared"], start.kept)
