"""Rounds over real sites: orders out, answers back, those that may count combined by the server."""

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from flwr.serverapp import Grid

from fedcso.core.errors import Fault, FedcsoError, LeftOut
from fedcso.core.tree import Tree
from fedcso.engines.job import Job
from fedcso.engines.loop import Rounds
from fedcso.engines.server import Report, begin, gather, open_round, restore_server
from fedcso.federation.acceptance import Expected, accepted
from fedcso.federation.elsewhere import Answer
from fedcso.federation.exchange import Arrival, exchange
from fedcso.federation.journal import ANSWERED, Journal
from fedcso.federation.options import Federation
from fedcso.federation.order import Order
from fedcso.federation.roster import Roster
from fedcso.federation.wire import Unreadable, pack, unpack
from fedcso.runs.callbacks import Interrupted

log = logging.getLogger("fedcso")

AGAIN_SECONDS = 1.0
"""Before a round that too few sites answered is played again."""


@dataclass(frozen=True)
class Connection:
    """What the rounds of all methods and seeds of a run have in common."""

    grid: Grid
    federation: Federation
    roster: Roster
    journal: Journal

    def measure(self, order: Order, x: Tree) -> list[Answer]:
        """Every site's metrics of a model, of those that are there, have held-out data and answer."""
        self.roster.refresh()
        about = self.roster.about
        asked = {n: node for n, node in self.roster.nodes.items() if about[n].tests or about[n].validates}
        content = {node: pack(order.words(), {"x": x}) for node in asked.values()}
        arrivals = exchange(self.grid, "evaluate", content, self.federation.round_seconds)
        found = []
        for client, node in sorted(asked.items()):
            try:
                found.append(_measured(arrivals[node]))
            except FedcsoError as reason:
                log.warning("site %s did not measure: %s", self.roster.names[client], reason)
        return found


class SiteBySite(Rounds):
    """Rounds of a single run (one method, one seed)."""

    def __init__(self, job: Job, connection: Connection, order: Order):
        self.job, self.connection, self.order = job, connection, order
        self.jobs = [job]
        self.failures: dict[int, FedcsoError] = {}
        self.server = begin(job, job.start())
        self.remembered = torch.full((len(job.clients),), -1)
        """By client, the round after which what it holds counts."""

    def state(self) -> dict[str, Tree]:
        """The server's state; of what sites hold only which of it counts."""
        return self.server._asdict() | {"remembered": self.remembered}

    def load(self, state: dict[str, Tree]) -> None:
        """Go on from such a state."""
        self.server = restore_server(self.job, state, self.server)
        self.remembered = state["remembered"].clone()

    def resize(self, inner_batch: int) -> None:
        """Sites draw what the run's settings say: refused when it is set up."""
        raise FedcsoError("sites can't be told of another inner_batch while a run goes on")

    def run_round(self, round: int) -> list[Report | FedcsoError]:
        """Ask who is to take part; if too few answer, wait for sites and ask again."""
        federation, roster = self.connection.federation, self.connection.roster
        participants = self.job.participants(round)
        least = min(federation.min_sites, len(participants))
        failed_since: float | None = None
        while True:
            roster.wait(federation.min_sites, federation.wait_seconds)
            reports = self.attempt(round, participants, least)
            if reports:
                return reports
            failed_since = failed_since or time.monotonic()
            if time.monotonic() - failed_since > federation.wait_seconds:
                raise Interrupted(f"round {round + 1}: fewer than {least} sites gave an answer that counts")
            log.warning("round %d is played again: fewer than %d sites gave an answer that counts", round + 1, least)
            time.sleep(AGAIN_SECONDS)

    def attempt(self, round: int, participants: list[int], least: int) -> list[Report | FedcsoError]:
        """One try at a round; nothing if too few answers may count."""
        federation, roster = self.connection.federation, self.connection.roster
        opened = open_round(self.job, self.server, round)
        asked = {n: roster.nodes[n] for n in participants if n in roster.nodes and roster.about[n].trains}
        known = {n: self.job.codec.remembers(int(self.remembered[n]), round) for n in asked}
        content = {
            node: pack(self.ordered(n, round).words(), {"shared": opened.message(known[n])})
            for n, node in asked.items()
        }
        answers = exchange(self.connection.grid, "train", content, federation.round_seconds)
        arrivals = {client: answers[node] for client, node in asked.items()}
        output = self.order.output_step in opened.round.steps
        expected = Expected(opened, output, federation.too_long, federation.round_seconds)
        replies, said, faults = accepted(arrivals, expected)
        faults |= {
            n: "not connected" if n not in roster.nodes else "nothing to train with"
            for n in participants
            if n not in asked
        }
        self.tell(round, arrivals, said, faults)
        for client in faults:
            if said.get(client, {}).get("forgot"):
                self.remembered[client] = -1  # it is told everything next time
        if len(replies) < least:
            return []
        dropped: Sequence[Fault] = [LeftOut(client, round, faults[client]) for client in sorted(faults)]
        combine = partial(federation.aggregation, opened.start)
        found = gather(self.job, participants, replies, dropped, len(asked), sum(known.values()), combine)
        self.server, reports = opened.close(found)
        if not self.job.algorithm.durable:
            self.remembered.fill_(-1)
        self.remembered[list(replies)] = round
        return reports

    def ordered(self, client: int, round: int) -> Order:
        """A round's work for one site."""
        return replace(self.order, client=client, round=round, remembered=int(self.remembered[client]))

    def tell(
        self, round: int, arrivals: dict[int, Arrival], said: dict[int, dict[str, Any]], faults: dict[int, str]
    ) -> None:
        """To the log by name, and into the table."""
        names = self.connection.roster.names
        rows = []
        for client in sorted(arrivals.keys() | faults.keys()):
            if client in faults:
                log.warning("round %d: site %s is left out: %s", round + 1, names[client], faults[client])
            if said.get(client, {}).get("forgot"):
                log.warning("round %d: site %s has lost its local state and starts anew", round + 1, names[client])
            arrival = arrivals.get(client, Arrival(None, "", 0.0, 0, 0))
            rows.append(
                {
                    "algorithm": self.order.algorithm,
                    "seed": self.order.seed,
                    "round": round + 1,
                    "site": names[client],
                    "outcome": faults.get(client, ANSWERED),
                    "seconds": f"{arrival.seconds:.2f}",
                    "computing": _seconds(said.get(client, {}).get("seconds")),
                    "bytes_down": arrival.bytes_down,
                    "bytes_up": arrival.bytes_up,
                }
            )
        self.connection.journal.record(rows)


def _seconds(value: Any) -> str:
    return f"{value:.2f}" if isinstance(value, int | float) else ""


def _measured(arrival: Arrival) -> Answer:
    """The metrics in an answer; an undefined one is NaN."""
    if arrival.content is None:
        raise FedcsoError(arrival.reason)
    said, _ = unpack(arrival.content)
    if "refused" in said:
        raise FedcsoError(str(said["refused"]))
    try:
        return Answer(_numbers(said["metrics"]), _numbers(said["validation"]))
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise Unreadable("its metrics can't be read") from error


def _numbers(metrics: dict[str, Any]) -> dict[str, float]:
    return {str(name): float("nan") if value is None else float(value) for name, value in metrics.items()}
