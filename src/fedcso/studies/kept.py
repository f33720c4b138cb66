"""Folders that are there already: load their results, or carry out what is left of them."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from fedcso.core.algorithm import Algorithm
from fedcso.core.errors import FedcsoError, InvalidValue
from fedcso.core.task import Task
from fedcso.fitting.fitted import Fitted
from fedcso.fitting.python import resume_fit
from fedcso.runs.folder import RunFolder
from fedcso.runs.given import Given
from fedcso.studies.results import RunResult, TuningResult
from fedcso.studies.run import resume_run
from fedcso.studies.tour import TourResult, resume_tour
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
    takes_objects: bool = False
    """Whether the folder may refer to objects of a program."""
    takes_ranks: bool = False


def _load_fit(folder: RunFolder) -> Fitted:
    _require_done(folder)
    return resume_fit(folder.path, lambda line: None)  # computes nothing again


def _load_tour(folder: RunFolder) -> TourResult:
    _require_done(folder)
    return TourResult(folder.path)


def _require_done(folder: RunFolder) -> None:
    if folder.status != "done":
        raise FedcsoError(
            f"{folder.path} is not finished ({folder.status}): go on with fedcso.resume({str(folder.path)!r})"
        )


def _resume_in_a_shell(folder: RunFolder, how: Wanted) -> Result:
    raise FedcsoError(f"{folder.path} is a run over real sites: continue it in a shell, fedcso resume {folder.path}")


KINDS = {
    "run": Kind(
        lambda folder: RunResult.open(folder.path),
        lambda folder, how: resume_run(folder, how.objects, how.ranks),
        takes_objects=True,
        takes_ranks=True,
    ),
    "sweep": Kind(
        lambda folder: TuningResult.open(folder.path),
        lambda folder, how: resume_tuning(folder, how.objects),
        takes_objects=True,
    ),
    "fit": Kind(_load_fit, lambda folder, how: resume_fit(folder.path, how.say)),
    "tour": Kind(_load_tour, lambda folder, how: resume_tour(folder)),
    "flower": Kind(lambda folder: RunResult.open(folder.path), _resume_in_a_shell),
}
"""By the command that made a folder."""


def load(folder: str | Path) -> Result:
    """Return the results in the folder of a run, sweep, fit or tour; a run or sweep may be unfinished."""
    opened = RunFolder.open(Path(folder))
    return _kind(opened).load(opened)


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
    kind, command = _kind(opened), _command(opened)
    if not kind.takes_objects and (task is not None or algorithms):
        raise InvalidValue("task" if task else "algorithms", task or algorithms, f"left out: a {command} has its own")
    if not kind.takes_ranks and ranks is not None:
        raise InvalidValue("ranks", ranks, f"left out: a {command} runs in one process")
    return kind.resume(opened, Wanted(Given.of(task, algorithms), ranks, say))


def _command(folder: RunFolder) -> str:
    return str(folder.config().get("command"))


def _kind(folder: RunFolder) -> Kind:
    command = _command(folder)
    if command not in KINDS:
        raise FedcsoError(
            f"{folder.path} was made by fedcso {command}, which has no results in Python: its page is in the folder, "
            f"and `fedcso resume {folder.path}` in a shell continues it"
        )
    return KINDS[command]
