"""Where clients live, how their local steps are carried out, and the loop over rounds that all of them share."""

from typing import TYPE_CHECKING

from fedcso.core.late import importer
from fedcso.core.registry import Registry

if TYPE_CHECKING:
    from fedcso.engines.engine import Engine
    from fedcso.engines.running import run as run
    from fedcso.engines.running import run_grid as run_grid

ENGINES: "Registry[Engine]" = Registry(
    "engine",
    __name__,
    {
        "simulation": "simulation:ENGINE",
        "stacked": "stacked:ENGINE",
        "compiled": "compiled:ENGINE",
        "threads": "threads:ENGINE",
        "reference": "reference:ENGINE",
        "distributed": "distributed:ENGINE",
    },
)
"""Every engine by name. A new engine is a file and a row here."""

if not TYPE_CHECKING:  # with it, a type checker would accept any name
    __getattr__ = importer(__name__, dict.fromkeys(("run", "run_grid"), "fedcso.engines.running"))
