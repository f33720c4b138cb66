"""Send messages to nodes and wait for their answers or the timeout.

Flower's `send_and_receive` does the same but looks only every three seconds and does not say when an answer came;
this uses the two calls that it is made of.
"""

import time
from collections.abc import Mapping
from typing import NamedTuple

from flwr.app import Message, RecordDict
from flwr.serverapp import Grid

from fedcso.federation.wire import size

POLL_SECONDS, SELDOM_SECONDS = 0.1, 0.5
"""How soon to look again for answers: at first, and after a while."""

SLOWER = 1.1
"""Every look is later than the one before by this factor."""

ERRORS = {
    1: "its app could not be loaded",
    2: "its app raised an error",
    3: "its message was lost",
    4: "its answer was lost",
    5: "its connection was lost",
    6: "it refused",
    7: "it refused the app",
    8: "its app's process died",
}
"""Descriptions of Flower's error codes."""

NO_ANSWER = "no answer in time"
NOT_SENT = "it could not be sent to"


class Response(NamedTuple):
    """The answer of a node, or why there is none."""

    content: RecordDict | None
    reason: str
    seconds: float
    bytes_down: int
    bytes_up: int


def exchange(grid: Grid, kind: str, contents: Mapping[int, RecordDict], seconds: float) -> dict[int, Response]:
    """Send each node its content, wait at most `seconds`, and return the answers or failures by node."""
    if not contents:
        return {}
    started = time.monotonic()
    sizes = {node: size(content) for node, content in contents.items()}
    messages = [Message(content, node, kind, ttl=seconds) for node, content in contents.items()]
    numbers = list(grid.push_messages(messages)) or [""] * len(messages)  # empty if messages are too large
    waiting = {number: node for number, node in zip(numbers, contents, strict=True) if number}
    unsent = set(contents) - set(waiting.values())
    found: dict[int, Response] = {}
    pause = POLL_SECONDS
    while waiting and time.monotonic() - started < seconds:
        for reply in grid.pull_messages(list(waiting)):
            # The source of an error is the SuperLink; only the message it replies to identifies the node.
            node = waiting.pop(reply.metadata.reply_to_message_id)
            found[node] = _arrival(reply, time.monotonic() - started, sizes[node])
        if waiting:
            time.sleep(pause)
            pause = min(SLOWER * pause, SELDOM_SECONDS)
    for node in contents:
        if node not in found:
            reason = NOT_SENT if node in unsent else NO_ANSWER
            found[node] = Response(None, reason, time.monotonic() - started, sizes[node], 0)
    return found


def _arrival(reply: Message, seconds: float, bytes_down: int) -> Response:
    if reply.has_error():
        reason = ERRORS.get(reply.error.code, f"Flower's error {reply.error.code}")
        return Response(None, reason, seconds, bytes_down, 0)
    return Response(reply.content, "", seconds, bytes_down, size(reply.content))
