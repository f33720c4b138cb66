"""How clients exchange what they share, for all engines: through a server, or with their neighbours (gossip).

Over a topology W (`fedcso.core.topology`) each client is the server of its neighbourhood: it aggregates the mean of its
neighbours' messages, with the weights of its row of W, and starts the next round from the result. The state of the run
is then the states of all clients; the reported `shared` is their mean.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import torch

from fedcso.core.algorithm import Server
from fedcso.core.codec import Message
from fedcso.core.costs import Costs
from fedcso.core.topology import count_edges
from fedcso.core.tree import Tree, average, index, stack
from fedcso.engines import server as at_server
from fedcso.engines.job import Job
from fedcso.engines.server import Gathered, Opened, Outcome

CLIENTS = "clients"
"""The key in `kept` under which the clients' states are stored."""


def open_round(job: Job, server: Server, number: int, shape: tuple[int, ...] = ()) -> Opened:
    """Open a round of one run, or of many along leading axes."""
    opened = at_server.open_round(job, server, number, shape)
    return opened if job.mixing is None else Gossip(job, server, opened.round, opened.broadcast, shape)


@dataclass(frozen=True)
class Gossip(Opened):
    """A round without a server: each client has a state of its own, and averages with its neighbours."""

    @property
    def matrix(self) -> torch.Tensor:
        """W, over the clients that train."""
        assert self.job.mixing is not None
        return self.job.mixing

    @cached_property
    def states(self) -> list[Server]:
        """The clients' states; before the first round, all are the initial one."""
        found = self.server.kept.get(CLIENTS)
        return [Server(**one) for one in found] if found else [self.server] * len(self.matrix)

    def message(self, known: bool, client: int, run: tuple[int, ...] = ()) -> Message:
        """Return the client's own state."""
        shared = self.states[self.job.able.index(client)].shared
        return index(shared, run) if run else shared

    def messages(self, known: bool) -> Message:
        """Return the states of all clients."""
        return stack([one.shared for one in self.states], axis=len(self.shape))

    def combine(self, gathered: Gathered) -> Server:
        """Let each client aggregate its neighbours' messages; return their mean, with all states beside it."""
        codec, algorithm = self.job.codec, self.job.algorithm
        states = [
            algorithm.aggregate(before, gathered.messages.mean(codec.read, weights), gathered.fraction)
            for before, weights in zip(self.states, self.matrix.tolist(), strict=True)
        ]
        mean: dict[str, Tree] = average([one.shared for one in states], [1.0] * len(states))
        return Server(mean, {CLIENTS: [one._asdict() for one in states]})

    def count(self, outcome: Outcome) -> Costs:
        """Return the costs of a round, in which each client sends its message to each of its neighbours."""
        one_to_each = outcome.costs.bytes_up // len(self.matrix)
        return replace(outcome.costs, bytes_up=one_to_each * count_edges(self.matrix), rounds=1)
