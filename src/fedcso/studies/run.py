"""Carry out a run: start it, or resume it."""

from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from fedcso.core.errors import InvalidValue
from fedcso.core.task import Task
from fedcso.reports import outputs
from fedcso.runs import launch
from fedcso.runs.auto_estimator import settle_estimator
from fedcso.runs.config import Flat, RunConfig
from fedcso.runs.execute import describe_data, execute_study, mark_end, needed_files, same_data
from fedcso.runs.folder import RunFolder
from fedcso.runs.given import NOTHING, Given
from fedcso.runs.specs import is_object
from fedcso.studies.arguments import Algorithms, read_arguments
from fedcso.studies.folders import require_problem
from fedcso.studies.following import call_followers
from fedcso.studies.results import RunResult


def run(
    task: str | PathLike[str] | Task,
    algorithms: Algorithms | None = None,
    *,
    seeds: int | Sequence[int] = 3,
    say: Callable[[str], None] = print,
    **options: Any,
) -> RunResult:
    """Run one or several methods on a problem, for several seeds, and write figures, tables and a report.

    This is `fedcso run` in Python, with the same names, defaults and errors. Ctrl-C stops it after a checkpoint.

    Args:
        task: the name of a problem (`fedcso.PROBLEMS`), your own as `path.py:name`, or a `fedcso.Task`
        algorithms: methods by name, `FCSG-M` or `FCSG-M(momentum=0.5)`, or `fedcso.Algorithm` objects; by default
            those that the problem recommends
        seeds: a number of seeds (3 for 0, 1, 2), or the seeds
        say: called with notes about the data and settings; `lambda line: None` for silence
        options: what `fedcso run PROBLEM --help` lists, with underscores: rounds, local_steps, inner_batch,
            learning_rate, estimator, engine, out, name, …, and the arguments of the problem: clients, noise, …
    """
    flat, objects = read_arguments("run", task, algorithms, {"seeds": seeds, **options})
    return start(flat, objects, say=say)


def start(
    settings: Flat,
    objects: Given = NOTHING,
    arguments: Sequence[str] | None = None,
    say: Callable[[str], None] = print,
) -> RunResult:
    """Start a new run with complete settings; `arguments` are those of the command line, to show for several hosts."""
    config = RunConfig.from_flat(settings, objects=objects)
    config.require_available()
    _require_names_for_ranks(config)
    task = config.task()
    settled = settle_estimator(config, task)
    config = settled.config
    config.units(task)  # raises if something does not fit together, before a folder is created
    for note in [*task.notes, *settled.notes()]:
        say(f"note    {note}")
    complete, files = {"command": "run"} | config.flat(), needed_files(task) | settled.files()
    folder = RunFolder.create(Path(config.out), config.title, complete, describe_data(task), config.sources(), files)
    if launch.needed(config.engine):
        again = ["run", "--config", str(folder.path / "config.yaml")]
        launch.on_this_host(folder, config.ranks, again if arguments is None else ["run", *arguments])
        return RunResult(folder.path)
    return _carry_out(folder, config, task)


def resume_run(folder: RunFolder, objects: Given = NOTHING, processes: int | None = None) -> RunResult:
    """Carry out what is left of a run; with the engine distributed the number of processes may change."""
    require_problem(folder)
    config = RunConfig.of(folder, objects)
    if processes is not None:
        launch.require_over_ranks(config.engine, processes)
    if launch.needed(config.engine):
        launch.on_this_host(folder, processes or config.ranks, ["resume", str(folder.path)])
        return RunResult(folder.path)
    return _carry_out(folder, config, same_data(folder, config.task()))


def _require_names_for_ranks(config: RunConfig) -> None:
    """Raise if other processes would need objects that only this program has."""
    for field, name in [("task", config.problem), *(("algorithms", spec.text) for spec in config.methods)]:
        if is_object(name) and launch.over_ranks(config.engine):
            raise InvalidValue(
                field, name, "in a file, as path.py:name, for the engine distributed: other processes need it"
            )


def _carry_out(folder: RunFolder, config: RunConfig, task: Task) -> RunResult:
    launch.require_ranks(config.engine)
    study = config.study(config.units(task), folder.path)

    def on_checkpoint() -> None:
        outputs.write_metrics(folder, study.collect(), config.seeds, task)

    call_followers(config, task)
    found = execute_study(folder, study, config.track, on_checkpoint)
    outputs.write_all(folder, found, config.seeds, task)
    mark_end(folder, found)
    return RunResult(folder.path)
