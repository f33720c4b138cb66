"""Nodes are answered when there is a message, and looks wait for the parts of messages."""

import asyncio
import time

import pytest

from fedcso.federation.deploy import long_poll
from fedcso.federation.deploy.long_poll import LongPoll

NODE_ASKS, NODE_SENDS = "/v1/fleet/pull-messages", "/v1/fleet/push-messages"
COORDINATOR_ASKS, COORDINATOR_SENDS = "/v1/runtime/pull-messages", "/v1/runtime/push-messages"
COORDINATOR_SENDS_PARTS = "/v1/runtime/push-object"

LONG = 5.0
"""More than any of these tests takes."""


class SuperLink:
    """An application that hands out messages, each once, and records the requests."""

    def __init__(self, status=200):
        self.status, self.messages, self.requests, self.bodies = status, [], [], []

    async def __call__(self, scope, receive, send):
        self.requests.append(scope["path"])
        self.bodies.append((await receive())["body"])
        scope["state"]["seen"] = True  # as frameworks do; it must be another dictionary for every look
        message = self.messages.pop() if scope["path"] == NODE_ASKS and self.messages else b""
        await send({"type": "http.response.start", "status": self.status})
        await send({"type": "http.response.body", "body": message})

    def looks(self):
        return self.requests.count(NODE_ASKS)


async def ask(app, path, node=b"node", gone=None):
    """Send a request and return its status and body; `gone` is set when the sender has disconnected."""
    gone = gone or asyncio.Event()
    unread = [{"type": "http.request", "body": b"2", "more_body": False}]
    unread += [{"type": "http.request", "body": b"1", "more_body": True}]
    sent = []

    async def receive():
        if unread:
            return unread.pop()
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(part):
        sent.append(part)

    scope = {"path": path, "headers": [(b"flwr-public-key", node)], "state": {}}
    await app(scope, receive, send)
    return (sent[0]["status"], b"".join(part.get("body", b"") for part in sent)) if sent else None


@pytest.fixture
def quick(monkeypatch):
    """Shorter times than in use, where a test waits for their end."""
    monkeypatch.setattr(long_poll, "HOLD_SECONDS", 0.2)
    monkeypatch.setattr(long_poll, "PARTS_SECONDS", 0.1)


def test_a_node_is_answered_when_the_coordinator_has_sent_all_parts():
    async def play():
        superlink = SuperLink()
        app = LongPoll(superlink)
        asked = asyncio.ensure_future(ask(app, NODE_ASKS))
        await asyncio.sleep(0.05)
        assert superlink.looks() == 1
        superlink.messages.append(b"message")
        await ask(app, COORDINATOR_SENDS)
        await ask(app, COORDINATOR_SENDS_PARTS)
        await asyncio.sleep(0.05)
        assert not asked.done()
        await ask(app, COORDINATOR_ASKS)
        assert await asyncio.wait_for(asked, LONG) == (200, b"message")
        assert superlink.looks() == 2
        assert superlink.bodies[0] == superlink.bodies[-1] == b"12"

    asyncio.run(play())


def test_a_node_is_answered_at_once_if_there_is_a_message_or_an_error():
    async def play():
        superlink = SuperLink()
        superlink.messages.append(b"message")
        assert await asyncio.wait_for(ask(LongPoll(superlink), NODE_ASKS), LONG) == (200, b"message")
        unknown = SuperLink(status=401)
        assert await asyncio.wait_for(ask(LongPoll(unknown), NODE_ASKS), LONG) == (401, b"")
        assert unknown.looks() == 1

    asyncio.run(play())


def test_a_node_is_told_after_a_while_that_there_is_no_message(quick):
    async def play():
        began = time.monotonic()
        assert await ask(LongPoll(SuperLink()), NODE_ASKS) == (200, b"")
        assert time.monotonic() - began >= 0.2

    asyncio.run(play())


def test_no_message_is_handed_to_a_node_that_is_gone():
    async def play():
        superlink, gone = SuperLink(), asyncio.Event()
        app = LongPoll(superlink)
        asked = asyncio.ensure_future(ask(app, NODE_ASKS, gone=gone))
        await asyncio.sleep(0.05)
        gone.set()
        assert await asyncio.wait_for(asked, LONG) is None
        superlink.messages.append(b"message")
        await ask(app, COORDINATOR_SENDS)
        await ask(app, COORDINATOR_ASKS)
        assert superlink.messages == [b"message"]

    asyncio.run(play())


def test_the_coordinator_looks_when_nodes_have_sent_all_parts():
    async def play():
        superlink = SuperLink()
        app = LongPoll(superlink)
        await ask(app, NODE_SENDS, b"a")
        look = asyncio.ensure_future(ask(app, COORDINATOR_ASKS))
        others = asyncio.ensure_future(ask(app, NODE_ASKS, b"b"))
        await asyncio.sleep(0.05)
        assert COORDINATOR_ASKS not in superlink.requests
        again = asyncio.ensure_future(ask(app, NODE_ASKS, b"a"))
        await asyncio.wait_for(look, LONG)
        for waiting in (others, again):
            waiting.cancel()

    asyncio.run(play())


def test_a_sender_whom_flower_refuses_delays_no_one():
    async def play():
        unknown = SuperLink(status=401)
        app = LongPoll(unknown)
        await ask(app, NODE_SENDS, b"stranger")
        await asyncio.wait_for(ask(app, COORDINATOR_ASKS), 0.5)
        assert not any(app.senders.values())

    asyncio.run(play())


def test_a_node_that_dies_while_it_sends_delays_the_coordinator_only_for_a_moment(quick):
    async def play():
        superlink = SuperLink()
        app = LongPoll(superlink)
        await ask(app, NODE_SENDS)
        for _ in range(2):
            await asyncio.wait_for(ask(app, COORDINATOR_ASKS), LONG)
        assert superlink.requests.count(COORDINATOR_ASKS) == 2

    asyncio.run(play())
