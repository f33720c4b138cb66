"""A coordinator's process does not outlive its SuperLink.

Flower starts it in a session of its own, where it would wait for a killed SuperLink for ever, and hold the run folder.
"""

import logging
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

LOOK_SECONDS = 2.0
GONE_SECONDS = 15.0
"""So long without anyone listening at the SuperLink's port."""

log = logging.getLogger("fedcso")


@contextmanager
def watched(port: int | None) -> Iterator[None]:
    """End this process when no one listens any more at a port here; the last checkpoint is all that is needed."""
    over = threading.Event()
    if port:
        threading.Thread(target=_watch, args=(port, over), daemon=True).start()
    try:
        yield
    finally:
        over.set()


def _watch(port: int, over: threading.Event) -> None:
    missed = 0.0
    while not over.wait(LOOK_SECONDS):
        missed = 0.0 if listens(port) else missed + LOOK_SECONDS
        if missed >= GONE_SECONDS:
            log.error("the SuperLink is gone; start it again (fedcso flower up), then go on by fedcso resume")
            os._exit(1)


def listens(port: int) -> bool:
    """True if someone does at this port of this machine."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
