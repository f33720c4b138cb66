"""The plain loop, client after client: Algorithm 1 as it is written, with which all other engines are compared."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from fedcso.core.algorithm import Algorithm
from fedcso.core.errors import Fault, FedcsoError, NonFinite
from fedcso.core.tree import Tree
from fedcso.engines.client import Reply, local_round
from fedcso.engines.engine import Engine, only_one
from fedcso.engines.job import Job
from fedcso.engines.local_states import LocalStates
from fedcso.engines.loop import Rounds
from fedcso.engines.server import Report, conclude, no_one_left


class ClientByClient(Rounds):
    """Rounds of a single run. `each` maps a function over the clients: the built-in `map`, or a pool's."""

    def __init__(self, job: Job, each: Callable[..., Iterable[Any]] = map):
        self.job = job
        self.each = each
        self.jobs = [job]
        self.shared = job.algorithm.init(job.start())
        self.local = LocalStates(job.device)
        self.output_step = job.output_step()
        self.failures: dict[int, FedcsoError] = {}

    def state(self) -> dict[str, Tree]:
        """The server's state and, by number, the clients' local ones."""
        return {"shared": self.shared, "local": self.local.saved()}

    def load(self, state: dict[str, Tree]) -> None:
        """Go on from such a state."""
        self.shared = state["shared"]
        self.local.load(state["local"])

    def resize(self, inner_batch: int) -> None:
        """From now on draw so many inner samples for each ξ."""
        self.job = self.job.resized(inner_batch)
        self.jobs = [self.job]

    def play(self, round: int) -> list[Report | FedcsoError]:
        """Every participant does its local steps; the server averages what they send."""
        participants = self.job.participants(round)
        replies, broken = self.local_rounds(participants, round)
        if broken and self.job.plan.on_nonfinite == "stop":
            return [broken[0]]
        if not replies:
            return [no_one_left(round, broken)]
        return [self.aggregate(round, participants, replies, broken)]

    def local_rounds(self, clients: list[int], round: int) -> tuple[dict[int, Reply], list[NonFinite]]:
        """The replies of some clients, and why others have none (the first of these, if it stops the run)."""
        replies: dict[int, Reply] = {}
        broken: list[NonFinite] = []
        for client, reply in zip(clients, self.each(lambda n: self.local_round(n, round), clients), strict=True):
            if isinstance(reply, Reply):
                replies[client] = reply
                continue
            broken.append(reply)
            if self.job.plan.on_nonfinite == "stop":
                break
        return replies, broken

    def local_round(self, client: int, round: int) -> Reply | NonFinite:
        """One client's reply, or why it has none."""
        try:
            return local_round(self.job, client, round, self.shared, self.local.get(client), self.output_step)
        except NonFinite as reason:
            return reason

    def aggregate(
        self, round: int, participants: list[int], replies: dict[int, Reply], dropped: Sequence[Fault]
    ) -> Report:
        """The server averages; clients keep what is theirs."""
        report = conclude(self.job, round, self.shared, participants, replies, dropped)
        self.shared = report.shared
        self.remember(replies)
        return report

    def remember(self, replies: dict[int, Reply]) -> None:
        """Keep the local states of those who took part; the others' too, if these last."""
        if not self.job.algorithm.durable:
            self.local.clear()
        self.local.keep({client: reply.local for client, reply in replies.items()})


@contextmanager
def _start(algorithms: Sequence[Algorithm], job: Job, seeds: Sequence[int]) -> Iterator[Rounds]:
    yield ClientByClient(only_one(algorithms, job, seeds))


ENGINE = Engine(_start)
