"""Rounds over real sites: send requests, collect answers, and combine those that are accepted."""

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from flwr.app import RecordDict
from flwr.serverapp import Grid

from fedcso.core.errors import FedcsoError, is_number
from fedcso.core.tree import Tree
from fedcso.engines.job import Job
from fedcso.engines.loop import Rounds
from fedcso.engines.server import Report, begin, open_round, restore_server
from fedcso.federation.acceptance import content_of
from fedcso.federation.attempt import Attempt, Collect, Collected
from fedcso.federation.collecting import SingleUpdates
from fedcso.federation.counting import SiteCounts, read_counts
from fedcso.federation.exchange import Response, exchange
from fedcso.federation.journal import ANSWERED, Journal
from fedcso.federation.options import Federation
from fedcso.federation.remote_problem import Answer
from fedcso.federation.request import COUNTS, Order
from fedcso.federation.roster import Roster
from fedcso.federation.secure.collecting import SecureSums
from fedcso.federation.secure.revealed import Revealed
from fedcso.federation.wire import Unreadable, in_a_line, pack
from fedcso.runs.callbacks import Interrupted

log = logging.getLogger("fedcso")

LARGEST_METRIC = 1e30
LONGEST_SECONDS = 1e9

AGAIN_SECONDS = 1.0
"""Seconds to wait before repeating a round with too few answers."""


@dataclass(frozen=True)
class Connection:
    """What the rounds of all methods and seeds of a run share."""

    grid: Grid
    federation: Federation
    roster: Roster
    journal: Journal
    revealed: Revealed = field(default_factory=Revealed)

    def collect(self) -> Collect:
        """Return how updates are collected."""
        if self.federation.secure_aggregation:
            return SecureSums(self.federation, self.revealed)
        return SingleUpdates(self.federation)

    def measure(self, order: Order, x: Tree) -> list[Answer]:
        """Return the metrics of a model from all connected sites that have held-out data and answer."""
        found = []
        for client, arrival in self._ask("evaluate", order, x).items():
            try:
                found.append(_measured(arrival))
            except FedcsoError as reason:
                log.warning("site %s did not measure: %s", self.roster.names[client], reason)
        return found

    def count(self, order: Order, x: Tree) -> list[SiteCounts]:
        """Return what each site answers when asked for the scores of a model, counted in bins."""
        arrivals, found = self._ask(COUNTS, order, x), []
        for client, site in enumerate(self.roster.names):
            arrival = arrivals.get(client, Response(None, "not connected", 0.0, 0, 0))
            try:
                counts = read_counts(*content_of(arrival), self.roster.about[client].size)
                found.append(SiteCounts(site, counts, arrival.bytes_up))
            except FedcsoError as reason:
                log.warning("the scores of site %s are not counted: %s", site, reason)
                found.append(SiteCounts(site, {}, arrival.bytes_up, str(reason)))
        return found

    def send(self, kind: str, contents: Mapping[int, RecordDict]) -> dict[int, Response]:
        """Send messages to connected sites, and return their answers by client."""
        nodes = self.roster.nodes
        arrivals = exchange(
            self.grid, kind, {nodes[n]: content for n, content in contents.items()}, self.federation.round_seconds
        )
        return {client: arrivals[nodes[client]] for client in contents}

    def _ask(self, kind: str, order: Order, x: Tree) -> dict[int, Response]:
        """Send a model to all connected sites that have held-out data, and return their answers by client."""
        self.roster.refresh()
        about = self.roster.about
        asked = [n for n in sorted(self.roster.nodes) if about[n].tests or about[n].validates]
        return self.send(kind, {client: pack(order.words(), {"x": x}) for client in asked})


class SiteBySite(Rounds):
    """Rounds of a single run (one method, one seed)."""

    def __init__(self, job: Job, connection: Connection, order: Order):
        self.job, self.connection, self.order = job, connection, order
        self.collect = connection.collect()
        self.jobs = [job]
        self.failures: dict[int, FedcsoError] = {}
        self.server = begin(job, job.start())
        self.remembered = torch.full((len(job.clients),), -1)
        """For each client, the last round whose local state is valid; −1 for none."""

    def state(self) -> dict[str, Tree]:
        """Return the server's state, and which of the sites' local states are valid."""
        return self.server._asdict() | {"remembered": self.remembered}

    def load(self, state: dict[str, Tree]) -> None:
        """Restore such a state."""
        self.server = restore_server(self.job, state, self.server)
        self.remembered = state["remembered"].clone()

    def run_round(self, round: int) -> list[Report | FedcsoError]:
        """Run a round; if too few sites answer, wait for sites and repeat it."""
        federation, roster = self.connection.federation, self.connection.roster
        participants = self.job.participants(round)
        least = min(federation.min_sites, len(participants))
        failed_since: float | None = None
        while True:
            roster.wait(federation.min_sites, federation.wait_seconds)
            reports, why_not = self.attempt(round, participants, least)
            if reports:
                return reports
            failed_since = failed_since or time.monotonic()
            if time.monotonic() - failed_since > federation.wait_seconds:
                raise Interrupted(f"round {round + 1}: {why_not}")
            log.warning("repeating round %d: %s", round + 1, why_not)
            time.sleep(AGAIN_SECONDS)

    def attempt(self, round: int, participants: list[int], least: int) -> tuple[list[Report | FedcsoError], str]:
        """Try a round; return its reports, or none and the reason."""
        roster, opened = self.connection.roster, open_round(self.job, self.server, round)
        asked = [n for n in participants if n in roster.nodes and roster.about[n].trains]
        absent = {
            n: "not connected" if n not in roster.nodes else "nothing to train with"
            for n in participants
            if n not in asked
        }
        known = {n: self.job.codec.remembers(int(self.remembered[n]), round) for n in asked}
        orders = {n: self.ordered(n, round) for n in asked}
        output = self.order.output_step in opened.round.steps
        found = self.collect(
            Attempt(self.job, opened, participants, orders, known, absent, least, output, self.connection.send)
        )
        self.tell(round, found._replace(faults=found.faults | absent))
        for client in found.faults:
            if found.said.get(client, {}).get("forgot"):
                self.remembered[client] = -1  # send it the full message next time
        if found.result is None:
            return [], found.why_not
        self.server, reports = opened.close(found.result)
        if not self.job.algorithm.durable:
            self.remembered.fill_(-1)
        self.remembered[found.used] = round
        return reports, ""

    def ordered(self, client: int, round: int) -> Order:
        """Return the request for one site."""
        return replace(self.order, client=client, round=round, remembered=int(self.remembered[client]))

    def tell(self, round: int, found: Collected) -> None:
        """Log failures by site, and add the round to the journal, with the norms of the updates that are used."""
        _, said, faults, used, norms, *_ = found
        names, aggregation = self.connection.roster.names, self.connection.federation.aggregation
        rows, arrivals = [], found.arrivals
        for client in sorted(arrivals.keys() | faults.keys()):
            if client in faults:
                log.warning("round %d: site %s is left out: %s", round + 1, names[client], faults[client])
            if said.get(client, {}).get("forgot"):
                log.warning(
                    "round %d: site %s has lost its local state and starts without it", round + 1, names[client]
                )
            arrival = arrivals.get(client, Response(None, "", 0.0, 0, 0))
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
                    "norm": f"{norms[client]:.6g}" if client in norms else "",
                    "noise": f"{aggregation.deviation(len(used)):.6g}" if client in used else "",
                }
            )
        self.connection.journal.record(rows)


def _seconds(value: Any) -> str:
    return f"{value:.2f}" if is_number(value) and 0 <= value <= LONGEST_SECONDS else ""


def _measured(arrival: Response) -> Answer:
    """Return the metrics in an answer, with NaN for undefined ones."""
    said, _ = content_of(arrival)
    try:
        return Answer(_numbers(said["metrics"]), _numbers(said["validation"]))
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise Unreadable("its metrics can't be read") from error


def _numbers(metrics: dict[str, Any]) -> dict[str, float]:
    """Return metrics with NaN for undefined ones; raise if there is another name or value than a judge can give."""
    for name, value in metrics.items():
        if not (name.isidentifier() and name == in_a_line(name)):
            raise ValueError("a metric has no name")
        if value is not None and not (is_number(value) and abs(value) <= LARGEST_METRIC):
            raise ValueError("a metric is not a number")
    return {name: float("nan") if value is None else float(value) for name, value in metrics.items()}
