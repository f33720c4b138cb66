"""A plain loop over clients: Algorithm 1 as written. All other engines are compared with it."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from fedcso.core.algorithm import Algorithm
from fedcso.core.errors import FedcsoError, NonFinite
from fedcso.core.tree import Tree
from fedcso.engines.client import Client, Reply, local_round
from fedcso.engines.engine import Engine, only_one
from fedcso.engines.exchange import open_round
from fedcso.engines.job import Job
from fedcso.engines.local_states import LOCAL, MEMORY, empty_states
from fedcso.engines.loop import Rounds
from fedcso.engines.server import Gathered, Opened, Report, begin, fatal, gather, restore_server


class ClientByClient(Rounds):
    """Rounds of a single run; `each` maps a function over clients (the built-in `map`, or a pool's)."""

    def __init__(self, job: Job, each: Callable[..., Iterable[Any]] = map):
        self.job = job
        self.each = each
        self.jobs = [job]
        self.server = begin(job, job.start())
        self.held = empty_states(job)
        self.output_step = job.output_step()
        self.failures: dict[int, FedcsoError] = {}

    def state(self) -> dict[str, Tree]:
        """Return the server's state and the clients' states by number."""
        return self.server._asdict() | {name: states.saved() for name, states in self.held.items()}

    def load(self, state: dict[str, Tree]) -> None:
        """Restore such a state."""
        self.server = restore_server(self.job, state, self.server)
        for name, states in self.held.items():
            states.load(state.get(name, {}))

    def run_round(self, round: int) -> list[Report | FedcsoError]:
        """Run the local steps of every participant, then average what they send."""
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
        """Return the participants that run in this process: all of them."""
        return participants

    def local_rounds(self, clients: list[int], opened: Opened) -> tuple[dict[int, Reply], list[NonFinite]]:
        """Return the replies of the given clients, and the failures; stop at the first failure if it ends the run."""
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
        """Return a client's reply, or the failure."""
        local, memory = self.held[LOCAL].get(number), self.held[MEMORY].get(number)
        client = Client(number, self.job.clients[number], local, memory)
        message = opened.message(memory is not None, number)
        try:
            return local_round(self.job.work, client, opened.round.number, message, self.output_step)
        except NonFinite as reason:
            return reason

    def gather(
        self, round: int, participants: list[int], replies: dict[int, Reply], broken: Sequence[NonFinite]
    ) -> Gathered | FedcsoError:
        """Return the results of the round, or the reason why the run can't continue."""
        if reason := fatal(self.job, round, len(replies), broken):
            return reason
        known = sum(client in self.held[MEMORY] for client in participants)
        return gather(self.job, participants, replies, broken, len(participants), known)


@contextmanager
def _start(algorithms: Sequence[Algorithm], job: Job, seeds: Sequence[int]) -> Iterator[Rounds]:
    yield ClientByClient(only_one(algorithms, job, seeds))


ENGINE = Engine(_start)
