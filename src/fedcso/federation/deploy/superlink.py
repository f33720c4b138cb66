"""Flower's SuperLink, with long polls: python superlink.py OPTION …  (the options of flower-superlink)"""

import uvicorn
from flwr.supercore.http_logging import get_uvicorn_log_config
from flwr.supercore.logger import console_handler
from flwr.superlink.cli.flower_superlink import SuperLinkLifespan, _parse_superlink_lifespan_config
from flwr.superlink.main import create_app

from fedcso.federation.deploy.long_poll import LongPoll

GRACE_SECONDS = 2
"""How long nodes may be kept waiting after SIGTERM."""


def main() -> None:
    """Serve Flower's application until SIGTERM or SIGINT."""
    config = _parse_superlink_lifespan_config()
    app = create_app(config, SuperLinkLifespan)
    app.add_middleware(LongPoll)
    uvicorn.run(
        app,
        host=config.host,
        port=config.port,
        log_config=get_uvicorn_log_config(console_handler.level),
        ssl_keyfile=config.ssl_keyfile,
        ssl_certfile=config.ssl_certfile,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )


if __name__ == "__main__":
    main()
