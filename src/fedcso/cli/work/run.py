"""Carry out a run: start it, resume it, or follow the rank that does."""

import json
import signal
from dataclasses import replace
from pathlib import Path

from fedcso.cli.folders import require_problem
from fedcso.core.errors import FedcsoError
from fedcso.core.initial_weights import InitialWeights
from fedcso.core.task import Task
from fedcso.engines import ranks, torchrun
from fedcso.runs import launch
from fedcso.runs.auto_estimator import settle_estimator
from fedcso.runs.config import Flat, RunConfig
from fedcso.runs.execute import describe_data, execute_study, needed_files, same_data
from fedcso.runs.folder import RunFolder


def start(settings: Flat, arguments: list[str]) -> int:
    """Start a new run with the settings that were read from the arguments."""
    config = RunConfig.from_flat(settings)
    config.require_available()
    task = config.task()
    settled = settle_estimator(config, task)
    config = settled.config
    config.units(task)  # raises if something does not fit together, before a folder is created
    for note in task.notes:
        print(f"note    {note}")
    settled.tell()
    complete, files = {"command": "run"} | config.flat(), needed_files(task) | settled.files()
    folder = RunFolder.create(Path(config.out), config.title, complete, describe_data(task), config.sources(), files)
    if launch.needed(config.engine):
        return launch.on_this_host(folder, config.ranks, ["run", *arguments])
    return _carry_out(folder, config, task)


def resume(folder: RunFolder, processes: int | None = None) -> int:
    """Carry out what is left of a run; with the engine distributed the number of processes may change."""
    require_problem(folder)
    config = RunConfig.of(folder)
    if processes is not None:
        launch.require_over_ranks(config.engine, processes)
    if launch.needed(config.engine):
        return launch.on_this_host(folder, processes or config.ranks, ["resume", str(folder.path)])
    return _carry_out(folder, config, same_data(folder, config.task()))


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


def _call_followers(config: RunConfig, task: Task) -> None:
    """Send the settings and the initial weights, which other hosts do not have, to the other ranks."""
    elsewhere = replace(config, init=None, fresh_last_layer=False)
    ranks.send_command(json.dumps([elsewhere.flat(), _digests(config, task)]))
    ranks.send_content(b"" if task.start is None else task.start.to_bytes())


def _carry_out(folder: RunFolder, config: RunConfig, task: Task) -> int:
    from fedcso.reports import outputs, terminal  # imported here because drawing loads slowly, and other ranks don't

    launch.require_ranks(config.engine)
    study = config.study(config.units(task), folder.path)

    def on_checkpoint() -> None:
        outputs.write_metrics(folder, study.collect(), config.seeds, task)

    _call_followers(config, task)
    found = execute_study(folder, study, config.track, on_checkpoint)
    table = outputs.write_all(folder, found, config.seeds, task)
    return terminal.conclude(folder, table, found)
