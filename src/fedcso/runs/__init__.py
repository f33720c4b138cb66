"""A run on disk: its configuration, its folder, its checkpoints, and the loop over units of work."""
