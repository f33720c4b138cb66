"""Long polls for a SuperLink: answer a node that asks for messages when there is one.

A SuperNode that is told that there is no message sleeps for three seconds before it asks again. This ASGI middleware
holds such an empty answer back until the coordinator has sent something, at most for HOLD_SECONDS.

Messages are announced first, and their parts follow; whoever finds a message without its parts waits a second or more
before trying again. So a look for messages waits until those who are sending have finished, which is when they ask for
messages themselves. Every look passes through all of Flower's checks: only registered nodes are kept waiting.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Event = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Event]]
Send = Callable[[Event], Awaitable[None]]
Application = Callable[[Event, Receive, Send], Awaitable[None]]
"""An ASGI application and what it is called with."""

NODES, COORDINATOR = "/v1/fleet", "/v1/runtime"
ANNOUNCING, SENDING, ASKING = "/push-messages", "/push-object", "/pull-messages"
PUBLIC_KEY = b"flwr-public-key"
"""The header that identifies a node."""

HOLD_SECONDS = 20.0
"""How long an empty answer is held back; a SuperNode gives up after 30 s."""

LOOK_SECONDS = 3.0
"""The longest time between two looks, as without long polls."""

PARTS_SECONDS = 1.0
"""How long a look waits for the next part of a message; for all parts it waits HOLD_SECONDS."""


class LongPoll:
    """Middleware that holds back empty answers to nodes, and looks that come too early."""

    def __init__(self, app: Application):
        self.app = app
        self.senders: dict[str, dict[bytes, float]] = {NODES: {}, COORDINATOR: {}}
        """On each side, when those who have not asked since sent the last part."""
        self.sent = asyncio.Event()
        """Set when the coordinator has sent messages, and replaced for the next ones."""

    async def __call__(self, scope: Event, receive: Receive, send: Send) -> None:
        """Answer a request."""
        path = str(scope.get("path"))
        if path == NODES + ASKING:
            self.senders[NODES].pop(_key(scope), None)
            await self._answer(scope, receive, send)
            return
        if path == COORDINATOR + ASKING:
            self._note_sent()
            await self._parts_of(NODES)
        for side in (NODES, COORDINATOR):
            if path in (side + ANNOUNCING, side + SENDING):
                send = self._noting(side, _key(scope), send)
        await self.app(scope, receive, send)

    def _noting(self, side: str, key: bytes, send: Send) -> Send:
        """Return a `send` that notes the sender of a part once Flower has accepted it: anyone could send a request."""

        async def note(event: Event) -> None:
            if event.get("status") == 200:
                self.senders[side][key] = time.monotonic()
            await send(event)

        return note

    def _note_sent(self) -> None:
        """Wake the nodes that wait if the coordinator has sent something since it last asked."""
        if self.senders[COORDINATOR]:
            self.senders[COORDINATOR].clear()
            self.sent.set()
            self.sent = asyncio.Event()

    async def _parts_of(self, side: str) -> None:
        """Wait for those who are sending."""
        ends = time.monotonic() + HOLD_SECONDS
        while (now := time.monotonic()) < ends and any(
            now - part < PARTS_SECONDS for part in self.senders[side].values()
        ):
            await asyncio.sleep(0.02)

    async def _answer(self, scope: Event, receive: Receive, send: Send) -> None:
        """Look for a node's messages until there is one, the time is over, or the node is gone."""
        body = await _body(receive)
        gone = asyncio.ensure_future(_disconnected(receive))
        ends = time.monotonic() + HOLD_SECONDS
        try:
            while True:
                await self._parts_of(COORDINATOR)
                sent = self.sent  # from before the look, so that nothing is missed
                answer = await self._look(scope, body)
                left = ends - time.monotonic()
                if not _is_empty(answer) or left <= 0:
                    break
                news = asyncio.ensure_future(sent.wait())
                await asyncio.wait({gone, news}, timeout=min(left, LOOK_SECONDS), return_when=asyncio.FIRST_COMPLETED)
                news.cancel()
                if gone.done():
                    return  # a look would hand the next message to nobody
        finally:
            gone.cancel()
        for part in answer:
            await send(part)

    async def _look(self, scope: Event, body: bytes) -> list[Event]:
        """Return what the application answers to the node now."""
        answer: list[Event] = []
        unread = [body]

        async def receive() -> Event:
            if unread:
                return {"type": "http.request", "body": unread.pop(), "more_body": False}
            never: asyncio.Future[Event] = asyncio.get_running_loop().create_future()
            return await never  # a disconnect is noticed by `_answer`

        async def send(part: Event) -> None:
            answer.append(part)

        await self.app({**scope, "state": dict(scope.get("state", {}))}, receive, send)
        return answer


def _key(scope: Event) -> bytes:
    """Return what identifies the sender; the coordinator needs nothing."""
    return next((value for name, value in scope["headers"] if name == PUBLIC_KEY), b"")


async def _body(receive: Receive) -> bytes:
    parts, more = [], True
    while more:
        event = await receive()
        parts.append(event.get("body", b""))
        more = event.get("more_body", False)
    return b"".join(parts)


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        continue


def _is_empty(answer: list[Event]) -> bool:
    """Return whether the node was told that there is no message: a protocol buffer without fields has no bytes."""
    return answer[0]["status"] == 200 and not any(part.get("body") for part in answer)
