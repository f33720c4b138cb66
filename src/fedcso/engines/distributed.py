"""Several processes or hosts under `torchrun`: each rank owns some clients, and what they share is all-reduced.

Client n belongs to rank n mod R, which keeps its local state. Every rank runs the local rounds of its own participants
and sums up what they send (weighted, in float64); the sums are all-reduced, and entries of pools all-gathered. All
ranks hold the same server state; only the leader displays progress, decides and writes. For any R, results agree with
the simulation up to the order of additions.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch

from fedcso.core.algorithm import Algorithm
from fedcso.core.codec import Message, concatenate
from fedcso.core.costs import Costs
from fedcso.core.errors import FedcsoError, NonFinite
from fedcso.core.evaluation import evaluate, evaluate_validation, merge_metrics
from fedcso.core.judge import ByClient
from fedcso.core.packing import pack, unpack
from fedcso.core.tree import Tree, leaves, unflatten_like, zeros_like
from fedcso.core.workers import cores, pool
from fedcso.engines import ranks, torchrun
from fedcso.engines.client import Reply
from fedcso.engines.engine import Engine, only_one
from fedcso.engines.job import Job
from fedcso.engines.local_states import MEMORY, LocalStates, empty_states
from fedcso.engines.loop import Callback, Progress, Rounds
from fedcso.engines.reference import ClientByClient
from fedcso.engines.server import Gathered, Outcome, fatal
from fedcso.engines.snapshot import Snapshot, from_bytes, to_bytes

GO_ON, GIVE_STATE, STOP = "go on", "give state", "stop"
"""The leader's commands after a round."""


class Stopped(FedcsoError):
    """The leader stopped the run."""


class OverRanks(ClientByClient):
    """Rounds of a single run, in which every rank runs its own clients."""

    def owner(self, client: int) -> int:
        """Return the rank to which a client belongs."""
        return client % torchrun.size()

    def own(self, participants: list[int]) -> list[int]:
        """Return the participants that belong to this rank."""
        return [n for n in participants if self.owner(n) == torchrun.rank()]

    def gather(
        self, round: int, participants: list[int], replies: dict[int, Reply], broken: Sequence[NonFinite]
    ) -> Gathered | FedcsoError:
        """Combine the results of all ranks; return the reason instead if the run can't continue."""
        job, weights = self.job, self.job.weights(list(replies))
        loss = sum(weight * reply.train_loss for weight, reply in zip(weights, replies.values(), strict=True))
        spent = sum((reply.costs for reply in replies.values()), Costs())
        known = sum(client in self.held[MEMORY] for client in self.own(participants))
        rows = ranks.gather_rows([len(replies), len(broken), known, sum(weights), loss, *spent.as_dict().values()])
        present, missing, known, total, loss, *counts = (sum(column) for column in zip(*rows, strict=True))
        broken = _gathered(broken) if missing else broken
        if reason := fatal(job, round, int(present), broken):
            return reason
        has_some = [bool(row[0]) for row in rows]
        own = {client: reply.message for client, reply in replies.items()}
        messages = OnRanks(own, weights, total, has_some, job.device, participants)
        outputs = replace(messages, own={client: reply.output for client, reply in replies.items()})
        outcome = Outcome(
            participants,
            broken,
            costs=Costs(*map(int, counts)),
            train_loss=loss / total,
            output=outputs.mean(lambda x: x) if self.output_step in job.plan.steps(round) else None,
            receivers=len(participants),
            known=int(known),
        )
        return Gathered(messages, present / len(job.able), [outcome])

    def evaluate(self, models: Sequence[Tree]) -> list[dict[str, float]]:
        """Evaluate on pooled held-out data on the leader, and on each client's held-out data on the followers."""
        job = self.job
        judge, test = job.task.judge, job.task.test
        whole, at_home = (test.whole, test.clients) if isinstance(test, ByClient) else (test, [])
        others = torchrun.size() - 1
        own = [n for n in range(len(at_home)) if not others or n % others == torchrun.rank() - 1]
        found: dict[str, Any] = {"whole": {}, "validation": {}, "clients": {}}
        (x,) = models
        if not torchrun.follows():
            pooled = replace(job.task, test=whole, validation=None)
            (found["whole"],) = evaluate(pooled, [x], job.weights_of_seen())
            (found["validation"],) = evaluate_validation(job.task, [x])
        for n in own:
            (metrics,) = judge.measure_at_clients(x, ByClient(None, [at_home[n]]))
            found["clients"][n] = {name: float(value) for name, value in metrics.items()}
        gathered = [json.loads(answer) for answer in ranks.all_gather(json.dumps(found).encode())]
        by_client = {int(n): metrics for answer in gathered for n, metrics in answer["clients"].items()}
        means = judge.mean_over_clients([by_client[n] for n in range(len(at_home))])
        leader = gathered[torchrun.LEADER]
        return [merge_metrics(leader["whole"], {name: float(v) for name, v in means.items()}, leader["validation"])]

    # ----------------------------------------------------------------------- leader and followers

    def announce(self, progress: Progress, callbacks: Sequence[Callback]) -> None:
        """Call the callbacks on the leader; on a follower, obey the leader's commands until the next round."""
        if not torchrun.follows():
            with self._leading():
                super().announce(progress, callbacks)
            return
        while (said := ranks.receive_command()) == GIVE_STATE:
            for states in self.held.values():
                _send_states(states, states, torchrun.LEADER)
        if said != GO_ON:
            raise Stopped("rank 0 stopped the run")

    @contextmanager
    def _leading(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            ranks.send_command(STOP)
            raise
        ranks.send_command(GO_ON)

    def state(self) -> dict[str, Tree]:
        """Return the state of all ranks' clients, which the waiting followers send to the leader."""
        ranks.send_command(GIVE_STATE)
        everyone = empty_states(self.job)
        for name, states in everyone.items():
            states.load(self.held[name].saved())
            for source in range(1, torchrun.size()):
                _receive_states(states, source)
        return super().state() | {name: states.saved() for name, states in everyone.items()}

    def agree_on(self, start: Snapshot | None) -> Snapshot | None:
        """Return the leader's snapshot, with the states of this rank's clients only."""
        held = empty_states(self.job)
        if torchrun.follows():
            if content := ranks.broadcast(b""):
                start = from_bytes(content, self.job.device)
                for states in held.values():
                    _receive_states(states, torchrun.LEADER)
        elif start is None:
            ranks.broadcast(b"")
        else:
            ranks.broadcast(to_bytes(start._replace(state=start.state | {name: {} for name in held})))
            for name, states in held.items():
                self._deal(start.state.get(name, {}), states)
        return start and start._replace(state=start.state | {name: states.saved() for name, states in held.items()})

    def _deal(self, saved: Mapping[str, Tree], own: LocalStates) -> None:
        """Send every follower the states of its clients and load the leader's."""
        everyone = LocalStates(self.job.device)
        everyone.load(saved)
        for target in range(1, torchrun.size()):
            _send_states(everyone, [n for n in everyone if self.owner(n) == target], target)
        own.load({n: state for n, state in saved.items() if self.owner(int(n)) == torchrun.LEADER})


def _send_states(states: LocalStates, clients: Iterable[int], target: int) -> None:
    """Send states one by one, so that they are never all in memory, then an empty message."""
    for client in clients:
        ranks.send(pack(states.get(client), client=client), target)
    ranks.send(b"", target)


def _receive_states(states: LocalStates, source: int) -> None:
    while content := ranks.receive(source):
        local, notes = unpack(content, states.device)
        states.keep({notes["client"]: local})


@dataclass(frozen=True)
class OnRanks:
    """Messages spread over the ranks, each of which has those of its own clients."""

    own: Mapping[int, Message]
    """The messages of this rank's clients, by their numbers."""
    weights: Sequence[float]
    total: float
    """The sum of all ranks' weights."""
    has_some: Sequence[bool]
    """For each rank, whether it has any message."""
    device: str
    participants: Sequence[int]
    """The clients of all ranks."""

    def mean(self, read: Callable[[Message], Tree], weights: Sequence[float] | None = None) -> Tree:
        """Return the weighted mean over all ranks, in float64."""
        given = None if weights is None else dict(zip(self.participants, weights, strict=True))
        own_weights = self.weights if given is None else [given[client] for client in self.own]
        total = self.total if weights is None else sum(weights)
        parts = [read(message) for message in self.own.values()]
        like = zeros_like(parts[0]) if parts else None
        if not all(self.has_some):  # a rank without messages needs a template
            source = self.has_some.index(True)
            template = ranks.broadcast(pack(like) if torchrun.rank() == source else b"", source)
            like = unpack(template, self.device)[0] if like is None else like
        sums = torch.cat([torch.zeros(leaf.numel(), dtype=torch.float64, device=leaf.device) for leaf in leaves(like)])
        for weight, part in zip(own_weights, parts, strict=True):
            sums.add_(torch.cat([leaf.reshape(-1).to(torch.float64) for leaf in leaves(part)]), alpha=weight)
        ranks.all_reduce(sums)
        pieces = torch.split(sums / total, [leaf.numel() for leaf in leaves(like)])
        return unflatten_like(
            like, (piece.reshape(leaf.shape).to(leaf.dtype) for piece, leaf in zip(pieces, leaves(like), strict=True))
        )

    def concatenate(self, read: Callable[[Message], Tree]) -> Tree:
        """Return the entries of all ranks' messages, in the order of their clients."""
        parts = [read(message) for message in self.own.values()]
        answers = ranks.all_gather(pack(parts, clients=list(self.own), weights=list(self.weights)))
        found: dict[int, tuple[Tree, float]] = {}
        for content in answers:
            entries, notes = unpack(content, self.device)
            found |= dict(zip(notes["clients"], zip(entries, notes["weights"], strict=True), strict=True))
        return concatenate(*zip(*(found[client] for client in sorted(found)), strict=True))


def _gathered(broken: Sequence[NonFinite]) -> list[NonFinite]:
    """Return the failures of all ranks, ordered by client."""
    own = json.dumps([[b.quantity, b.client, b.round, b.step, b.seed] for b in broken])
    every = [NonFinite(*values) for answer in ranks.all_gather(own.encode()) for values in json.loads(answer)]
    return sorted(every, key=lambda reason: reason.client)


@contextmanager
def _start(algorithms: Sequence[Algorithm], job: Job, seeds: Sequence[int]) -> Iterator[Rounds]:
    """Start a run on all ranks, each of which calls this function; only the leader's callbacks and snapshot count."""
    if not torchrun.started():
        raise FedcsoError(
            "the engine distributed needs torchrun: start your script with `torchrun --nproc-per-node 2 script.py`, "
            "or use `fedcso run … --engine distributed`, which starts it"
        )
    job = replace(only_one(algorithms, job, seeds), device=torchrun.own_device(job.device))
    with pool(max(1, cores() // torchrun.on_this_host())) as threads:
        yield OverRanks(job, threads.map)


ENGINE = Engine(_start, over_ranks=True)
