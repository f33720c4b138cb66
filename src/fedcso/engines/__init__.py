"""Where clients live and how their local steps are carried out. Each module exports the same `run`."""

from collections.abc import Callable

from fedcso.core.trace import Trace
from fedcso.engines import compiled, distributed, reference, simulation, stacked, threads

ENGINES: dict[str, Callable[..., Trace]] = {
    "simulation": simulation.run,
    "stacked": stacked.run,
    "compiled": compiled.run,
    "threads": threads.run,
    "reference": reference.run,
    "distributed": distributed.run,
}
"""Every engine by name."""

GRIDS: dict[str, Callable[..., list[list[Trace]]]] = {"stacked": stacked.run_grid, "compiled": compiled.run_grid}
"""Those that play all settings and seeds at once."""
