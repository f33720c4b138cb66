"""Processes that start at once: a server has imported what they need, and forks."""

import multiprocessing

SERVER = multiprocessing.get_context("forkserver")
"""There is one server for all tests of a process, so what it imports is listed in one place."""

SERVER.set_forkserver_preload(
    [
        "fedcso.cli.commands.resume",
        "fedcso.cli.commands.run",
        "fedcso.cli.main",
        "fedcso.engines.distributed",
        "fedcso.reports.outputs",
        "fedcso.reports.terminal",
        "pytest",
        "sklearn.metrics",
        "tests.command_line",
        "tests.helpers",
        "torch.distributed",
        "torch.fx.experimental.symbolic_shapes",  # imported by the first gradient of several clients
    ]
)
