"""Train over real sites with Flower: the same problems and methods, with data that stay at the sites.

The coordinator's part is a ServerApp (`server`), a site's part a ClientApp (`client`). `shared` travels as one
record (`wire`); `local` stays at the site, in a folder of its own (`memory`). Needs the extra: pip install
'fedcso[flower]'.
"""

import importlib.util

from fedcso.core.errors import FedcsoError


def require_flower() -> None:
    """Raise if Flower is not installed."""
    if importlib.util.find_spec("flwr") is None:
        raise FedcsoError("Flower is not installed, which real sites need: pip install 'fedcso[flower]'")
