"""Flower's SuperLink, closed and with long polls: python superlink.py FLEET OPTION …

FLEET is the address HOST:PORT for sites, at which only the fleet's paths are served. The options are those of
flower-superlink; --host and --port are the address for commands and Flower's own helpers, on loopback. After SIGHUP
new connections get the certificate that is in the files then.
"""

import importlib
import signal
import sys
from typing import Any

import uvicorn
from flwr.supercore.http_logging import get_uvicorn_log_config
from flwr.supercore.logger import console_handler
from flwr.superlink.cli.flower_superlink import SuperLinkLifespan, _parse_superlink_lifespan_config
from flwr.superlink.main import create_app

from fedcso.federation.deploy.fleet_only import FleetOnly
from fedcso.federation.deploy.long_poll import LongPoll

GRACE_SECONDS = 2
"""How long nodes may be kept waiting after SIGTERM."""

START_SECONDS = 300
"""How long the coordinator's app may take to start. Flower waits 30 s, which a busy machine needs for imports alone,
and then starts a second process beside the first."""
LOST_SECONDS = 60
"""How long a started app may be silent before it counts as dead, as with Flower."""


def main() -> None:
    """Serve Flower's application until SIGTERM or SIGINT."""
    fleet_host, _, fleet_port = sys.argv.pop(1).rpartition(":")
    options = _parse_superlink_lifespan_config()
    be_patient_at_start()
    app = create_app(options, SuperLinkLifespan)
    app.add_middleware(LongPoll)
    app.add_middleware(FleetOnly, control_port=options.port)
    config = uvicorn.Config(
        app,
        host=options.host,
        port=options.port,
        log_config=get_uvicorn_log_config(console_handler.level),
        ssl_keyfile=options.ssl_keyfile,
        ssl_certfile=options.ssl_certfile,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    config.load()
    fleet = uvicorn.Config(app, host=fleet_host.strip("[]"), port=int(fleet_port), log_config=None).bind_socket()
    signal.signal(signal.SIGHUP, lambda number, frame: _reload_certificate(config))
    uvicorn.Server(config).run(sockets=[fleet, config.bind_socket()])


def be_patient_at_start() -> None:
    """Give the coordinator's app more time to start, and as much as before between signs of life."""
    state: Any = importlib.import_module("flwr.supercore.corestate.sql_corestate")
    state.HEARTBEAT_DEFAULT_INTERVAL = START_SECONDS
    state.HEARTBEAT_PATIENCE = LOST_SECONDS / START_SECONDS


def _reload_certificate(config: uvicorn.Config) -> None:
    if config.ssl:
        config.ssl.load_cert_chain(str(config.ssl_certfile), config.ssl_keyfile)


if __name__ == "__main__":
    main()
