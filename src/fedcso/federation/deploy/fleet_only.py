"""Close a SuperLink: the port that sites reach serves the fleet's paths, and all others are served on loopback only.

Flower serves sites (/v1/fleet/), commands (/v1/control/) and its own helpers (/v1/runtime/) with one application, and
asks nobody who gives a command for a password. This ASGI middleware answers 404 to whatever does not come in at the
control port and is not meant for the fleet. The control port is bound to the loopback interface, so that the operating
system, and no header of a request, tells where a request came in.
"""

from fedcso.federation.deploy.long_poll import NODES, Application, Event, Receive, Send


class FleetOnly:
    """Middleware that lets requests for other paths than the fleet's pass at the control port only."""

    def __init__(self, app: Application, control_port: int):
        self.app, self.control_port = app, control_port

    async def __call__(self, scope: Event, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] == "lifespan" or self._is_allowed(scope):
            await self.app(scope, receive, send)
        elif scope["type"] == "http":
            await send({"type": "http.response.start", "status": 404, "headers": [(b"content-length", b"0")]})
            await send({"type": "http.response.body", "body": b""})
        else:
            await send({"type": "websocket.close"})

    def _is_allowed(self, scope: Event) -> bool:
        _, port = scope.get("server") or (None, None)
        return port == self.control_port or (scope["type"] == "http" and scope["path"].startswith(NODES + "/"))
