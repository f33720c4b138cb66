"""Share a run with the processes of other ranks: the first one calls them, and they follow it.

They import nothing that draws or makes tables, which would load slowly.
"""

import json
import signal
from dataclasses import replace
from pathlib import Path

from fedcso.core.errors import FedcsoError
from fedcso.core.initial_weights import InitialWeights
from fedcso.core.task import Task
from fedcso.engines import ranks, torchrun
from fedcso.runs.config import RunConfig


def follow() -> int:
    """Run on a rank other than the first: follow it, with the same settings, files and data."""
    said = ranks.receive_command()
    if not said:  # the first rank has stopped and reports why
        return 0
    flat, told = json.loads(said)
    start = ranks.receive_content()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # the first rank handles them and stops the others
    config = RunConfig.from_flat(flat)
    task = config.task()
    if start:
        task = task.starting_from(InitialWeights.from_bytes(start))
    for what, ours in _digests(config, task).items():
        if ours != told[what]:
            raise FedcsoError(
                f"{what} on rank {torchrun.rank()} differs from that on the first rank (digest {ours}, not "
                f"{told[what]}); all ranks must have the same"
            )
    config.study(config.units(task), Path()).follow()
    return 0


def _digests(config: RunConfig, task: Task) -> dict[str, str]:
    """Return digests of what must be the same on all ranks."""
    files = {f"{source.path}": source.fingerprint[:16] for source in config.sources()}
    return {"data": task.digest()} | files


def call_followers(config: RunConfig, task: Task) -> None:
    """Send the settings and the initial weights, which other hosts do not have, to the other ranks."""
    elsewhere = replace(config, init=None, fresh_last_layer=False)
    ranks.send_command(json.dumps([elsewhere.flat(), _digests(config, task)]))
    ranks.send_content(b"" if task.start is None else task.start.to_bytes())
