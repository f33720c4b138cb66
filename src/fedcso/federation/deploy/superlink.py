"""Flower's SuperLink, closed and with long polls: python superlink.py FLEET OPTION …

FLEET is the address HOST:PORT for sites, at which only the fleet's paths are served. The options are those of
flower-superlink; --host and --port are the address for commands and Flower's own helpers, on loopback. After SIGHUP
new connections get the certificate that is in the files then.
"""

import signal
import sys

import uvicorn
from flwr.supercore.http_logging import get_uvicorn_log_config
from flwr.supercore.logger import console_handler
from flwr.superlink.cli.flower_superlink import SuperLinkLifespan, _parse_superlink_lifespan_config
from flwr.superlink.main import create_app

from fedcso.federation.deploy.fleet_only import FleetOnly
from fedcso.federation.deploy.long_poll import LongPoll

GRACE_SECONDS = 2
"""How long nodes may be kept waiting after SIGTERM."""


def main() -> None:
    """Serve Flower's application until SIGTERM or SIGINT."""
    fleet_host, _, fleet_port = sys.argv.pop(1).rpartition(":")
    options = _parse_superlink_lifespan_config()
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


def _reload_certificate(config: uvicorn.Config) -> None:
    if config.ssl:
        config.ssl.load_cert_chain(str(config.ssl_certfile), config.ssl_keyfile)


if __name__ == "__main__":
    main()
