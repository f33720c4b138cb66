"""Where clients live and how their local steps are carried out. Each module exports the same `run`."""
