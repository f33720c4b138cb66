"""Where clients live, how their local steps are carried out, and the loop over rounds that all of them share."""

from fedcso.engines.running import ENGINES, run, run_grid

__all__ = ["ENGINES", "run", "run_grid"]
