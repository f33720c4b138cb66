"""One attempt at a round: what is asked of the sites, and what came of it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from flwr.app import RecordDict

from fedcso.core.codec import Message
from fedcso.core.errors import LeftOut
from fedcso.engines.job import Job
from fedcso.engines.server import Gathered, Opened
from fedcso.federation.exchange import Response
from fedcso.federation.request import Order

Send = Callable[[str, Mapping[int, RecordDict]], dict[int, Response]]
"""Sends messages of a kind to clients, and returns their answers."""


@dataclass(frozen=True)
class Attempt:
    """What is asked of the sites."""

    job: Job
    opened: Opened
    participants: list[int]
    orders: dict[int, Order]
    """The requests to the participants that are connected, by client."""
    known: dict[int, bool]
    """Which of these remember earlier messages."""
    absent: dict[int, str]
    """The participants that are not asked, and why."""
    least: int
    """The fewest answers for a round."""
    output: bool
    """Whether the model after the output step is asked for."""
    send: Send

    @property
    def number(self) -> int:
        """The number of the round."""
        return self.opened.round.number

    def message(self, client: int) -> Message:
        """Return the model for a client."""
        return self.opened.message(self.known[client], client)

    def dropped(self, faults: Mapping[int, str]) -> list[LeftOut]:
        """Return the participants whose update is not used."""
        reasons = {**self.absent, **faults}
        return [LeftOut(client, self.number, reasons[client]) for client in sorted(reasons)]


class Collected(NamedTuple):
    """What came of an attempt."""

    arrivals: dict[int, Response]
    said: dict[int, dict[str, Any]]
    faults: dict[int, str]
    """Why the answers of some clients are not used."""
    used: list[int]
    """The clients whose updates are used if there is a result."""
    norms: dict[int, float]
    """The norms of these updates, as far as they are known."""
    result: Gathered | None
    why_not: str = ""
    """Why there is no result."""


Collect = Callable[[Attempt], Collected]
"""A way to collect the sites' updates."""
