"""Real sites over Flower: the same problems and methods where the data can't come to one machine.

The coordinator's part is a ServerApp (`server`), a site's part a ClientApp (`client`). `shared` travels as one
ArrayRecord; `local` stays at the site, in a folder of its own (`memory`). Needs the extra: pip install
'fedcso[flower]'.
"""

import importlib.util

from fedcso.core.errors import FedcsoError


def require_flower() -> None:
    """Say how to install what is missing."""
    if importlib.util.find_spec("flwr") is None:
        raise FedcsoError("federations of real sites need Flower: pip install 'fedcso[flower]'")
