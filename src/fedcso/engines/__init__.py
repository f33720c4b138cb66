"""Where clients live and how their local steps are carried out. Each module exports the same `run`."""

from collections.abc import Callable

from fedcso.engines import distributed, reference, simulation, stacked, threads
from fedcso.trace import Trace

ENGINES: dict[str, Callable[..., Trace]] = {
    "simulation": simulation.run,
    "stacked": stacked.run,
    "threads": threads.run,
    "reference": reference.run,
    "distributed": distributed.run,
}
"""Every engine by name."""
