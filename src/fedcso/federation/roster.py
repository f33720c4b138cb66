"""The roster of sites: which node is which site, and what each has reported about its data."""

import logging
import time
from collections.abc import Sequence
from typing import Any

from flwr.serverapp import Grid

from fedcso.core.errors import FedcsoError
from fedcso.federation.exchange import exchange
from fedcso.federation.remote_problem import SiteInfo
from fedcso.federation.request import Order
from fedcso.federation.wire import Unreadable, in_a_line, pack, unpack
from fedcso.runs.callbacks import Interrupted

log = logging.getLogger("fedcso")

LOOK_SECONDS = 1.0
SAY_SECONDS = 15.0
AGAIN_SECONDS = 60.0


class Roster:
    """The sites of a run; a name belongs to the first node that claims it while that node is connected."""

    def __init__(self, grid: Grid, order: Order, answer_seconds: float):
        self.grid, self.order, self.answer_seconds = grid, order, answer_seconds
        self.names = order.sites
        self.nodes: dict[int, int] = {}
        """The current node of each client."""
        self.said: dict[int, dict[str, Any]] = {}
        """The last description of each client."""
        self.about = [SiteInfo() for _ in self.names]
        self.turned_away: dict[int, float] = {}
        """Nodes that could not take part, with the time of their answer; they are asked again later."""

    def refresh(self) -> None:
        """Remove nodes that have disconnected, and ask new nodes who they are."""
        there = set(self.grid.get_node_ids())
        self.nodes = {client: node for client, node in self.nodes.items() if node in there}
        away = {node for node, when in self.turned_away.items() if time.monotonic() - when < AGAIN_SECONDS}
        new = sorted(there - set(self.nodes.values()) - away)
        if new:
            self._ask(new)

    def ask_again(self, order: Order) -> None:
        """Ask the same sites again with a new request."""
        self.order = order
        nodes, self.nodes = sorted(self.nodes.values()), {}
        self._ask(nodes)

    def wait(self, least: int, seconds: float) -> None:
        """Wait until this many sites are connected; raise `Interrupted` after `seconds`."""
        began = said = time.monotonic()
        self.refresh()
        while len(self.nodes) < least:
            now = time.monotonic()
            if now - began > seconds:
                raise Interrupted(f"{self._missing(least)}; waited {seconds:.0f} s (wait_seconds)")
            if now - said > SAY_SECONDS or said == began:
                log.warning("waiting: %s", self._missing(least))
                said = now
            time.sleep(LOOK_SECONDS)
            self.refresh()

    def wait_for_all(self, least: int, seconds: float) -> None:
        """Wait until all sites are connected; after `seconds`, accept `least`."""
        try:
            self.wait(len(self.names), seconds)
        except Interrupted:
            self.wait(least, LOOK_SECONDS)
            log.warning("starting without all sites: %s", self._missing(least))

    def turn_away(self, client: int, reason: FedcsoError) -> None:
        """Go on without a site that was connected."""
        node = self.nodes.pop(client)
        self.turned_away[node] = time.monotonic()
        log.warning("site %s (node %d) can't take part: %s", self.names[client], node, in_a_line(str(reason)))

    def _missing(self, least: int) -> str:
        absent = [name for client, name in enumerate(self.names) if client not in self.nodes]
        return (
            f"{len(self.nodes)} of {len(self.names)} sites are connected, {least} needed, missing {', '.join(absent)}"
        )

    def _ask(self, nodes: Sequence[int]) -> None:
        """Assign nodes to the sites that they claim to be."""
        content = {node: pack(self.order.words()) for node in nodes}
        for node, arrival in exchange(self.grid, "query", content, self.answer_seconds).items():
            if arrival.content is None:
                log.warning("node %d did not identify itself: %s", node, arrival.reason)
                continue  # asked again at the next refresh
            try:
                said, _ = unpack(arrival.content)
                reason = in_a_line(said["refused"]) if "refused" in said else self._bind(node, said)
            except (Unreadable, LookupError, TypeError, ValueError):
                said, reason = {}, "its answer can't be read"
            if reason:
                self.turned_away[node] = time.monotonic()
                log.warning("site %s (node %d) can't take part: %s", in_a_line(said.get("site")) or "?", node, reason)

    def _bind(self, node: int, said: dict[str, Any]) -> str:
        """Add a site; return the reason if that is not possible."""
        client = said["number"]
        if type(client) is not int or not 0 <= client < len(self.names) or self.names[client] != said["site"]:
            return f"its name {in_a_line(said['site'])!r} is not in the list"
        if client in self.nodes:
            return "another node has the same name"
        size = said.get("size")
        if size is not None and (type(size) is not int or size < 0):
            return "the size of its data is not a whole number of at least 0"
        if "size" in said:
            has = {name: bool(said[name]) for name in ("trains", "tests", "validates")}
            self.about[client] = SiteInfo(size, **has)
        self.nodes[client], self.said[client] = node, said
        log.info("site %s is node %d", self.names[client], node)
        return ""
