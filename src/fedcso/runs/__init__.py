"""Runs on disk: configuration, run folders, checkpoints, callbacks, and studies of several runs."""
