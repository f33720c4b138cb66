"""End the coordinator's process when its SuperLink is gone.

Flower starts this process in a new session, where it would wait forever for a killed SuperLink and keep the run folder
locked.
"""

import logging
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

LOOK_SECONDS = 2.0
GONE_SECONDS = 15.0
"""The SuperLink is gone after this time without anything listening at its port."""

log = logging.getLogger("fedcso")


@contextmanager
def watched(port: int | None) -> Iterator[None]:
    """Exit if nothing listens at a local port any more; a run can be resumed from its last checkpoint."""
    finished = threading.Event()
    if port:
        threading.Thread(target=_watch, args=(port, finished), daemon=True).start()
    try:
        yield
    finally:
        finished.set()


def _watch(port: int, finished: threading.Event) -> None:
    missed = 0.0
    while not finished.wait(LOOK_SECONDS):
        missed = 0.0 if listens(port) else missed + LOOK_SECONDS
        if missed >= GONE_SECONDS:
            log.error("the SuperLink is gone; restart it with fedcso flower up, then continue with fedcso resume")
            os._exit(1)


def listens(port: int) -> bool:
    """Return whether something listens at this port of this machine."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
