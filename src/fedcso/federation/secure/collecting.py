"""Collect the sum of the sites' updates, and nothing of a single one: the coordinator's messages of a secure sum."""

import logging
import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from fedcso.core.errors import FedcsoError
from fedcso.core.tree import Tree
from fedcso.federation.acceptance import Expected, content_of
from fedcso.federation.attempt import Attempt, Collected
from fedcso.federation.exchange import Response
from fedcso.federation.options import Federation
from fedcso.federation.secure.recovery import Ledger, unmask
from fedcso.federation.secure.revealed import Revealed
from fedcso.federation.secure.sums import Masked, accept_masked, add_up, close_sum
from fedcso.federation.secure.terms import Terms, digest_parts, settings_digest
from fedcso.federation.wire import pack

log = logging.getLogger("fedcso")

Read = Callable[[str, dict[str, Any], Tree], Any]
"""(site, what it says, what it sends) → what is used of it; raises if it can't be used."""


class TooFew(FedcsoError):
    """Too few sites have answered for a sum."""


@dataclass(frozen=True)
class SecureSums:
    """The coordinator sees the sum of the updates of at least as many sites as the threshold says."""

    federation: Federation
    revealed: Revealed

    def __call__(self, attempt: Attempt) -> Collected:
        """Ask for a sum; if there is none, the reason is told, and nothing of it is used."""
        exchange = Exchange(attempt)
        try:
            return self._collect(attempt, exchange)
        except FedcsoError as reason:
            return Collected(exchange.arrivals, exchange.said, exchange.faults, [], {}, None, why_not=str(reason))

    def _collect(self, attempt: Attempt, exchange: "Exchange") -> Collected:
        if not attempt.orders:
            raise TooFew("no site is connected")
        terms, again = self._terms(attempt)
        ledger, least = Ledger(terms), max(terms.threshold, attempt.least)
        exchange.terms = terms
        if len(terms.sites) < least:
            raise TooFew(f"only {len(terms.sites)} sites are connected, and a secure sum needs {least}")
        exchange.ask("secure_keys", terms.sites, lambda _: {}, lambda site, said, _: ledger.add_keys(site, said))
        _require(ledger.keys, least, "sent keys")
        keys = dict(ledger.keys)
        exchange.ask(
            "secure_shares", keys, lambda _: {"keys": keys}, lambda site, said, _: ledger.add_shares(site, said)
        )
        exchange.leave_out(ledger.settle())
        _require(ledger.dealt, least, "dealt shares")
        masked = self._masked(attempt, exchange, ledger)
        _require(masked, least, "sent masked updates")
        ledger.survivors = sorted(masked)
        if again and again != ledger.survivors:
            raise TooFew(f"the sum over {', '.join(again)} was revealed, so it can only be repeated with all of these")
        total = unmask(ledger, add_up(masked), self._reveal(exchange, ledger))
        result = close_sum(attempt, terms, masked, total, exchange.faults, self.federation.aggregation)
        used = [client for client, order in attempt.orders.items() if order.sites[client] in masked]
        return Collected(exchange.arrivals, exchange.said, exchange.faults, used, {}, result)

    def _terms(self, attempt: Attempt) -> tuple[Terms, list[str]]:
        """Return the terms, and the sites that must all take part because their sum was revealed before."""
        order = next(iter(attempt.orders.values()))
        again = self.revealed.sites(order.run, attempt.number)
        clients = [n for n in attempt.orders if not again or order.sites[n] in again]
        if missing := [site for site in again if site not in [order.sites[n] for n in clients]]:
            raise TooFew(f"a sum with {', '.join(missing)} was revealed, so it can only be repeated with all its sites")
        messages = [attempt.opened.message(known, n) for known in (True, False) for n in clients[:1]]
        return Terms(
            session=secrets.token_hex(16),
            run=order.run,
            round=attempt.number,
            sites=[order.sites[n] for n in clients],
            weights=attempt.job.weights(clients),
            threshold=self.federation.threshold(len(attempt.participants)),
            ranges=self.federation.secure_range,
            parts=digest_parts(*messages),
            settings=settings_digest(order),
        ), again

    def _masked(self, attempt: Attempt, exchange: "Exchange", ledger: Ledger) -> dict[str, Masked]:
        """Ask for masked updates, and return those that are accepted."""
        found: dict[str, Masked] = {}
        expected = Expected(attempt.opened, attempt.output, 0.0, self.federation.round_seconds)

        def read(site: str, said: dict[str, Any], tree: Tree) -> None:
            found[site] = Masked.read(said, tree, expected)

        exchange.ask("secure_update", ledger.dealt, lambda site: {"boxes": ledger.boxes_for(site)}, read, model=True)
        kept, strange = accept_masked(found, expected)
        exchange.leave_out(strange)
        ledger.restrict(next(iter(kept.values())).masked_with if kept else ())
        return kept

    def _reveal(self, exchange: "Exchange", ledger: Ledger) -> dict[str, dict[str, str]]:
        """Let the sites confirm the list of survivors, and return the shares that they reveal then."""
        signatures: dict[str, str] = {}
        revealed: dict[str, dict[str, str]] = {}
        survivors, terms = ledger.survivors, ledger.terms

        def sign(site: str, said: dict[str, Any], _: Tree) -> None:
            signatures[site] = str(said["signature"])

        def check(site: str, said: dict[str, Any], _: Tree) -> None:
            revealed[site] = ledger.check_revealed(site, said.get("shares"))

        exchange.ask("secure_confirm", survivors, lambda _: {"survivors": survivors}, sign, in_sum=True)
        _require(signatures, terms.threshold, "confirmed the list of the sites in the sum")
        self.revealed.note(terms.run, terms.round, survivors)
        exchange.ask("secure_reveal", list(signatures), lambda _: {"signatures": signatures}, check, in_sum=True)
        return revealed


class Exchange:
    """The messages of one sum, and what has become of each site."""

    def __init__(self, attempt: Attempt):
        self.attempt = attempt
        self.clients = {order.sites[n]: n for n, order in attempt.orders.items()}
        self.terms: Terms | None = None
        self.arrivals: dict[int, Response] = {}
        """For each client, its messages together."""
        self.said: dict[int, dict[str, Any]] = {}
        self.faults: dict[int, str] = {}

    def ask(
        self,
        kind: str,
        sites: Iterable[str],
        words: Callable[[str], dict[str, Any]],
        read: Read,
        model: bool = False,
        in_sum: bool = False,
    ) -> None:
        """Send a message of a kind to some sites, and read their answers.

        Args:
            kind: the name of the message
            sites: whom to ask
            words: what to say to a site, besides the terms
            read: takes the answers; a site for which it raises is left out
            model: whether to send the model along
            in_sum: whether the sites' masked updates are in the sum, so that nobody is left out any more
        """
        assert self.terms is not None
        contents = {}
        for site in list(sites):
            n, secure = self.clients[site], {"terms": self.terms.words(), **words(site)}
            order = replace(self.attempt.orders[n], secure=secure)
            contents[n] = pack(order.words(), {"shared": self.attempt.message(n)} if model else ())
        for n, arrival in self.attempt.send(f"train.{kind}", contents).items():
            self.arrivals[n] = _together(self.arrivals.get(n), arrival)
            site = self.attempt.orders[n].sites[n]
            try:
                said, tree = content_of(arrival)
                self.said[n] = self.said.get(n, {}) | said
                read(site, said, tree)
            except (FedcsoError, LookupError, TypeError, ValueError) as error:
                reason = str(error) if isinstance(error, FedcsoError) else f"its answer to {kind} can't be read"
                if in_sum:
                    log.warning("site %s is in the sum, but does not help to reveal it: %s", site, reason)
                else:
                    self.faults[n] = reason

    def leave_out(self, faults: Mapping[str, str]) -> None:
        """Leave out sites, with reasons, unless they are left out already."""
        self.faults = {self.clients[site]: reason for site, reason in faults.items()} | self.faults


def _together(before: Response | None, now: Response) -> Response:
    if before is None:
        return now
    down, up = before.bytes_down + now.bytes_down, before.bytes_up + now.bytes_up
    return Response(now.content, now.reason, before.seconds + now.seconds, down, up)


def _require(sites: Mapping[str, Any], least: int, did: str) -> None:
    if len(sites) < least:
        raise TooFew(f"only {len(sites)} sites have {did}, and a secure sum needs {least}")
