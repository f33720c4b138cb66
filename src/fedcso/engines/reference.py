"""The plain loop, client after client: Algorithm 1 as it is written, with which all other engines are compared."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from fedcso.core.algorithm import Algorithm
from fedcso.core.errors import FedcsoError, NonFinite
from fedcso.core.tree import Tree
from fedcso.engines.client import Client, Reply, local_round
from fedcso.engines.engine import Engine, only_one
from fedcso.engines.job import Job
from fedcso.engines.local_states import LOCAL, MEMORY, no_states
from fedcso.engines.loop import Rounds
from fedcso.engines.server import Gathered, Opened, Report, begin, fatal, gather, open_round, restored


class ClientByClient(Rounds):
    """Rounds of a single run. `each` maps a function over the clients: the built-in `map`, or a pool's."""

    def __init__(self, job: Job, each: Callable[..., Iterable[Any]] = map):
        self.job = job
        self.each = each
        self.jobs = [job]
        self.server = begin(job, job.start())
        self.held = no_states(job)
        self.output_step = job.output_step()
        self.failures: dict[int, FedcsoError] = {}

    def state(self) -> dict[str, Tree]:
        """The server's state and, by number, what clients hold."""
        return self.server._asdict() | {name: states.saved() for name, states in self.held.items()}

    def load(self, state: dict[str, Tree]) -> None:
        """Go on from such a state."""
        self.server = restored(self.job, state, self.server)
        for name, states in self.held.items():
            states.load(state.get(name, {}))

    def resize(self, inner_batch: int) -> None:
        """From now on draw so many inner samples for each ξ."""
        self.job = self.job.resized(inner_batch)
        self.jobs = [self.job]

    def play(self, round: int) -> list[Report | FedcsoError]:
        """Every participant does its local steps; the server averages what they send."""
        opened = open_round(self.job, self.server, round)
        participants = self.job.participants(round)
        replies, broken = self.local_rounds(self.own(participants), opened)
        found = self.gather(round, participants, replies, broken)
        if isinstance(found, FedcsoError):
            return [found]
        self.server, reports = opened.close(found)
        self.held[LOCAL].put({client: reply.local for client, reply in replies.items()})
        self.held[MEMORY].put({client: reply.memory for client, reply in replies.items() if reply.memory})
        return reports

    def own(self, participants: list[int]) -> list[int]:
        """Return the participants whose local steps are carried out in this process: all of them."""
        return participants

    def local_rounds(self, clients: list[int], opened: Opened) -> tuple[dict[int, Reply], list[NonFinite]]:
        """The replies of some clients, and why others have none (the first of these, if it stops the run)."""
        replies: dict[int, Reply] = {}
        broken: list[NonFinite] = []
        for client, reply in zip(clients, self.each(lambda n: self.local_round(n, opened), clients), strict=True):
            if isinstance(reply, Reply):
                replies[client] = reply
                continue
            broken.append(reply)
            if self.job.plan.on_nonfinite == "stop":
                break
        return replies, broken

    def local_round(self, number: int, opened: Opened) -> Reply | NonFinite:
        """One client's reply, or why it has none."""
        local, memory = self.held[LOCAL].get(number), self.held[MEMORY].get(number)
        client = Client(number, self.job.clients[number], local, memory)
        message = opened.message(known=memory is not None)
        try:
            return local_round(self.job.work, client, opened.round.number, message, self.output_step)
        except NonFinite as reason:
            return reason

    def gather(
        self, round: int, participants: list[int], replies: dict[int, Reply], broken: Sequence[NonFinite]
    ) -> Gathered | FedcsoError:
        """Return what the round gave, or why the run can't go on."""
        if reason := fatal(self.job, round, len(replies), broken):
            return reason
        known = sum(client in self.held[MEMORY] for client in participants)
        return gather(self.job, participants, replies, broken, len(participants), known)


@contextmanager
def _start(algorithms: Sequence[Algorithm], job: Job, seeds: Sequence[int]) -> Iterator[Rounds]:
    yield ClientByClient(only_one(algorithms, job, seeds))


ENGINE = Engine(_start)
