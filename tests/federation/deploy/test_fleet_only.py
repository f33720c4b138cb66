"""Other paths than the fleet's are served at the control port only, whatever a request says of itself."""

import asyncio

import pytest

pytest.importorskip("flwr", reason="needs Flower: pip install 'fedcso[flower]'")

from fedcso.federation.deploy.fleet_only import FleetOnly

CONTROL, PUBLIC = 9000, 8000


def answer(path, port, kind="http"):
    """The status of an answer, or how a connection of another kind ended."""

    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200})

    sent = []

    async def send(event):
        sent.append(event)

    server = None if port is None else ("127.0.0.1", port)
    scope = {"type": kind, "path": path, "server": server, "headers": [(b"x-forwarded-for", b"127.0.0.1")]}
    asyncio.run(FleetOnly(app, CONTROL)(scope, None, send))
    return sent[0].get("status", sent[0]["type"])


@pytest.mark.parametrize("path", ["/v1/control/start-run", "/v1/runtime/push-messages", "/v1/fleet", "/", "", "/docs"])
def test_what_is_not_for_the_fleet_is_found_at_the_control_port_only(path):
    assert answer(path, CONTROL) == 200
    assert answer(path, PUBLIC) == 404
    assert answer(path, None) == 404


@pytest.mark.parametrize("path", ["/v1/fleetx/../control/start-run", "//v1/fleet/", "/V1/FLEET/x", "v1/fleet/x"])
def test_paths_that_only_look_like_the_fleets_are_not_found(path):
    assert answer(path, PUBLIC) == 404


def test_the_fleets_paths_are_served_at_both():
    assert [answer("/v1/fleet/pull-messages", port) for port in (CONTROL, PUBLIC)] == [200, 200]


def test_other_connections_than_requests_are_closed_and_the_applications_start_is_let_through():
    assert answer("/v1/fleet/x", PUBLIC, "websocket") == "websocket.close"
    assert answer("", None, "lifespan") == 200
