"""Collect the updates of the sites one by one, and combine those that are accepted."""

from dataclasses import dataclass
from functools import partial

from fedcso.engines.server import gather
from fedcso.federation.acceptance import Expected, accepted
from fedcso.federation.aggregation import update_norm
from fedcso.federation.attempt import Attempt, Collected
from fedcso.federation.options import Federation
from fedcso.federation.wire import pack


@dataclass(frozen=True)
class SingleUpdates:
    """The coordinator sees each update, can test it, and combines them as the federation's options say."""

    federation: Federation

    def __call__(self, attempt: Attempt) -> Collected:
        """Ask all sites to train."""
        opened, job, federation = attempt.opened, attempt.job, self.federation
        content = {n: pack(order.words(), {"shared": attempt.message(n)}) for n, order in attempt.orders.items()}
        arrivals = attempt.send("train", content)
        expected = Expected(opened, attempt.output, federation.too_long, federation.round_seconds)
        replies, said, faults = accepted(arrivals, expected)
        averaged = {n: job.codec.read_averaged(reply.message, job.algorithm) for n, reply in replies.items()}
        norms = {n: update_norm(opened.start, sent) for n, sent in averaged.items()}
        found = Collected(arrivals, said, faults, list(replies), norms, result=None)
        if len(replies) < attempt.least:
            return found._replace(why_not=f"fewer than {attempt.least} answers were accepted")
        combine, known = partial(federation.aggregation, opened.start), sum(attempt.known.values())
        participants, dropped = attempt.participants, attempt.dropped(faults)
        return found._replace(result=gather(job, participants, replies, dropped, len(attempt.orders), known, combine))
