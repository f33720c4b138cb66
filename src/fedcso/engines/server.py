"""The server's part of a round, for all engines: `open_round` encodes messages, `Opened.close` aggregates replies.

In between, an engine runs the clients; it provides access to their messages as `fedcso.core.codec.Messages`.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from fedcso.core.algorithm import Server
from fedcso.core.codec import KEPT, Broadcast, Memory, Message, Messages, Round, concatenate, full
from fedcso.core.costs import Costs
from fedcso.core.errors import Fault, FedcsoError
from fedcso.core.metric import Metric
from fedcso.core.tree import Tree, Weight, average, index, map_leaves, nbytes, split, without
from fedcso.engines.client import Reply
from fedcso.engines.job import Job

TRAIN_LOSS = Metric("train_loss", "training loss", higher_is_better=False, curve=False)
"""The mean of the losses F̂ + r seen in the round's local steps, over the clients that count."""

Combine = Callable[[Sequence[Tree], Sequence[float]], Tree]
"""(messages, weights) → one combined tree."""


class Report(NamedTuple):
    """The result of one round of one run."""

    shared: dict[str, Tree]
    """The server's shared state after the round."""
    participants: list[int]
    dropped: Sequence[Fault]
    """Participants whose update was not used, with the reasons."""
    costs: Costs
    """The costs of all participants whose update was used."""
    train_loss: float
    """The mean of the losses F̂ + r over the round's local steps."""
    output: Tree | None
    """x̄_t at the random output step, if that step is in this round."""


class Outcome(NamedTuple):
    """What the server learns about one run's round, besides the messages."""

    participants: list[int]
    dropped: Sequence[Fault]
    costs: Costs
    """Samples, gradients and messages of the clients whose update is used."""
    train_loss: float
    output: Tree | None
    receivers: int
    """The number of clients that the server sent a message to."""
    known: int
    """The number of these that have a memory and received `Broadcast.to_known`."""


class Gathered(NamedTuple):
    """The results of a round, of one run or of many along leading axes."""

    messages: Messages
    fraction: Weight
    """The fraction of clients whose messages are used; one number, or one for each run."""
    outcomes: Sequence[Outcome | FedcsoError]
    """The outcome of each run, or the reason why it failed."""


@dataclass(frozen=True)
class Opened:
    """A round after the server's messages are encoded, of one run or of many along leading axes."""

    job: Job
    server: Server
    round: Round
    broadcast: Broadcast
    shape: tuple[int, ...] = ()
    """The leading axes of the server's leaves if many runs are stacked."""

    def message(self, known: bool, client: int, run: tuple[int, ...] = ()) -> Message:
        """Return the message for a client with a memory, or without, in a run given by its leading indices."""
        message = self._message(known)
        return index(message, run) if run else message

    def messages(self, known: bool) -> Message:
        """Return the messages for all clients along an axis after those of runs; of length 1 if they are the same."""
        return map_leaves(lambda leaf: leaf.unsqueeze(len(self.shape)), self._message(known))

    def _message(self, known: bool) -> Message:
        return self.broadcast.to_known if known else self.broadcast.to_new

    @cached_property
    def start(self) -> dict[str, Tree]:
        """The shared state from which a client without a memory starts."""
        return self._as_new[0]

    @cached_property
    def example(self) -> Message:
        """A template of the clients' messages: that of a new client before any step, without entries for pools."""
        shared, memory = self._as_new
        state = self.job.algorithm.send(self.job.algorithm.receive(shared, None), self.round.steps)
        without_entries = state.shared | dict.fromkeys(self.job.algorithm.pooled, ())
        return self.job.codec.reply(without_entries, memory, self.round)[0]

    @cached_property
    def _as_new(self) -> tuple[dict[str, Tree], Memory]:
        return self.job.codec.receive(self.broadcast.to_new, None, self.round)

    def close(self, gathered: Gathered) -> tuple[Server, list[Report | FedcsoError]]:
        """Combine the clients' messages, aggregate and count; return the server's new state and a report per run."""
        after = self.combine(gathered)

        def report(one: Outcome | FedcsoError, shared: dict[str, Tree]) -> Report | FedcsoError:
            if isinstance(one, FedcsoError):
                return one
            return Report(shared, one.participants, one.dropped, self.count(one), one.train_loss, one.output)

        return after, list(map(report, gathered.outcomes, split(after.shared, self.shape)))

    def combine(self, gathered: Gathered) -> Server:
        """Return the server's new state."""
        combined = self.job.codec.combine(gathered.messages, self.server.shared, self.round)
        before = Server(self.server.shared, without(self.server.kept, KEPT))
        after = self.job.algorithm.aggregate(before, combined, gathered.fraction)
        memory = {KEPT: self.broadcast.memory} if self.broadcast.memory else {}
        return Server(after.shared, after.kept | memory)

    def count(self, outcome: Outcome) -> Costs:
        """Return the costs of a round, with the server's messages."""
        to_known, to_new = self._sizes
        down = outcome.known * to_known + (outcome.receivers - outcome.known) * to_new
        return outcome.costs + Costs(rounds=1, bytes_down=down)

    @cached_property
    def _sizes(self) -> tuple[int, int]:
        """The bytes of a message to a client with a memory, and to one without."""
        to_known, to_new = (nbytes(self._message(known)) // math.prod(self.shape) for known in (True, False))
        return to_known, to_new


def begin(job: Job, x: Tree) -> Server:
    """Return the server's state before the first round; raise if the codec can't encode what the method shares."""
    server: Any = job.algorithm.init(x)
    if not isinstance(server, Server):  # a user's method written for an earlier version
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
    """Messages in a list."""

    messages: Sequence[Message]
    weights: Sequence[float]
    combine: Combine = average

    def mean(self, read: Callable[[Message], Tree], weights: Sequence[float] | None = None) -> Tree:
        """Return the weighted mean, or what replaces it (such as a median)."""
        return self.combine([read(message) for message in self.messages], weights or self.weights)

    def concatenate(self, read: Callable[[Message], Tree]) -> Tree:
        """Return the entries of all messages."""
        return concatenate([read(message) for message in self.messages], self.weights)


def gather(
    job: Job,
    participants: list[int],
    replies: Mapping[int, Reply],
    dropped: Sequence[Fault],
    receivers: int,
    known: int,
    combine: Combine = average,
) -> Gathered:
    """Return the results of a round from the replies of all its clients."""
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
    """Return why a run can't continue after a round: a failure that stops it, or no client left; None if it can."""
    if dropped and job.plan.on_nonfinite == "stop":
        return dropped[0]
    if not present:
        return FedcsoError(f"round {round}: all participating clients were dropped; the first failure: {dropped[0]}")
    return None


def restore_server(job: Job, state: Mapping[str, Any], start: Server) -> Server:
    """Return the server's state from a snapshot; what a snapshot of an earlier version lacks is initialised."""
    if "kept" in state:
        return Server(state["shared"], state["kept"])
    if job.codec != full:
        raise FedcsoError(
            "this run was started by an earlier version of fedcso, which stored the state of send_u differently, so it "
            "can't be resumed: start it again"
        )
    return Server(state["shared"], start.kept)
