"""Folders that are there already: load their results, or carry out what is left of them."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from fedcso.core.algorithm import Algorithm
from fedcso.core.errors import FedcsoError, InvalidValue
from fedcso.core.task import Task
from fedcso.experiments.tour import TourResult, resume_tour
from fedcso.fitting.fitted import Fitted
from fedcso.fitting.python import resume_fit
from fedcso.runs.folder import RunFolder
from fedcso.runs.given import Given
from fedcso.studies.results import RunResult, TuningResult
from fedcso.studies.run import resume_run
from fedcso.studies.tune import resume_tuning

Result = RunResult | TuningResult | Fitted | TourResult


class Wanted(NamedTuple):
    """What was asked for, besides the folder."""

    objects: Given
    ranks: int | None
    say: Callable[[str], None]


class Kind(NamedTuple):
    """What can be done with the folders of a command."""

    load: Callable[[RunFolder], Result]
    resume: Callable[[RunFolder, Wanted], Result]


def _silent(line: str) -> None:
    pass


KINDS = {
    "run": Kind(
        lambda folder: RunResult.open(folder.path), lambda folder, how: resume_run(folder, how.objects, how.ranks)
    ),
    "sweep": Kind(
        lambda folder: TuningResult.open(folder.path), lambda folder, how: resume_tuning(folder, how.objects)
    ),
    "fit": Kind(lambda folder: resume_fit(folder.path, _silent), lambda folder, how: resume_fit(folder.path, how.say)),
    "tour": Kind(lambda folder: TourResult(folder.path), lambda folder, how: resume_tour(folder)),
}
"""By the command that made a folder."""


def load(folder: str | Path) -> Result:
    """Return the results in the folder of a run, sweep, fit or tour; a run may be unfinished."""
    opened = RunFolder.open(Path(folder))
    command = str(opened.config().get("command"))
    if command == "flower":  # its folder is like that of a run
        return RunResult.open(opened.path)
    kind = _kind(opened, command)
    if command in ("fit", "tour") and opened.status != "done":
        raise FedcsoError(f"{folder} is not finished ({opened.status}): go on with fedcso.resume({str(folder)!r})")
    return kind.load(opened)


def resume(
    folder: str | Path,
    *,
    task: Task | None = None,
    algorithms: Sequence[Algorithm] = (),
    ranks: int | None = None,
    say: Callable[[str], None] = print,
) -> Result:
    """Carry out what is left of a run, sweep, fit or tour, and return its results, the same as without interruption.

    This is `fedcso resume` in Python.

    Args:
        folder: the run folder
        task: the same task again, if the run was started with a `fedcso.Task`, which no file describes
        algorithms: the same methods again, if the classes of some can't be imported (they were defined in a notebook)
        ranks: the number of processes of the engine distributed; by default as many as before
        say: called with lines about the progress of a fit
    """
    opened = RunFolder.open(Path(folder))
    command = str(opened.config().get("command"))
    kind = _kind(opened, command)
    if command not in ("run", "sweep") and (task is not None or algorithms):
        raise InvalidValue("task", task, f"left out: a {command} has its own")
    if command != "run" and ranks is not None:
        raise InvalidValue("ranks", ranks, f"left out: a {command} runs in one process")
    return kind.resume(opened, Wanted(Given.of(task, algorithms), ranks, say))


def _kind(folder: RunFolder, command: str) -> Kind:
    if command not in KINDS:
        raise FedcsoError(
            f"{folder.path} was made by fedcso {command}, which has no results in Python: its page is in the folder, "
            f"and `fedcso resume {folder.path}` in a shell continues it"
        )
    return KINDS[command]
