"""Execute a study in a run folder: lock the folder, write a log and keep the folder's status up to date."""

import hashlib
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from fedcso.core.errors import FedcsoError
from fedcso.core.judge import ByClient
from fedcso.core.task import Task, fingerprint
from fedcso.datasets.examples import Examples
from fedcso.engines.ranks import RankLost
from fedcso.runs import initial_model
from fedcso.runs.callbacks import Interrupted
from fedcso.runs.folder import RunFolder
from fedcso.runs.progress import display
from fedcso.runs.study import Results, Study
from fedcso.runs.tracking import TRACKERS


def execute_study(
    folder: RunFolder, study: Study, track: str, on_checkpoint: Callable[[], None] = lambda: None
) -> Results:
    """Execute a study in a run folder and return its results."""
    with at_work(folder):
        tracker = TRACKERS[track](folder.path)
        try:
            return study.execute(display(), tracker, on_checkpoint)
        finally:
            tracker.close()


def mark_end(folder: RunFolder, found: Results) -> None:
    """Record that all runs have ended: `failed` if some of them broke off, else `done`."""
    broken = [trace for settings in found.values() for traces in settings for trace in traces if trace.failure]
    folder.mark("failed" if broken else "done")


@contextmanager
def at_work(folder: RunFolder) -> Iterator[None]:
    """Lock a run folder, log to it, and record whether the run was interrupted."""
    with folder.alone(), _logging_to(folder):
        folder.mark("running")
        try:
            yield
        except (Interrupted, KeyboardInterrupt) as reason:
            folder.mark("interrupted")
            what = reason if isinstance(reason, Interrupted) else "stopped at once, after the last checkpoint"
            raise Interrupted(f"{what}. To continue: fedcso resume {folder.path}") from None
        except RankLost as reason:
            folder.mark("interrupted")
            raise RankLost(f"{reason}. To continue from the last checkpoint: fedcso resume {folder.path}") from None


@contextmanager
def _logging_to(folder: RunFolder) -> Iterator[None]:
    """Also write log messages to the folder's log.txt."""
    log = logging.getLogger("fedcso")
    handler = logging.FileHandler(folder.path / "log.txt")
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    log.addHandler(handler)
    log.info("started")
    try:
        yield
    finally:
        log.info("ended")
        log.removeHandler(handler)
        handler.close()


def same_data(folder: RunFolder, task: Task) -> Task:
    """Return the task; raise if its data differ from those that the run started with."""
    began, now = folder.environment()["data"], describe_data(task)
    if began.get("digest") != now["digest"]:
        was, is_now = began.get("digest"), now["digest"]
        raise FedcsoError(f"{folder.path} was started with other data (digest {was}, now {is_now}): start a new run")
    if began.get("init") != now.get("init"):
        raise FedcsoError(
            f"{folder.path / initial_model.FILE}, the weights that the run started from, is missing or has changed: "
            "put it back to resume, or start a new run"
        )
    return task


def describe_data(task: Task) -> dict[str, Any]:
    """Return what tells the data of a task, and the weights that it starts from, apart from others."""
    described: dict[str, Any] = {"digest": task.digest(), "clients": len(task.clients)}
    if task.test is not None:
        described["test"] = _test_digest(task.test.whole if isinstance(task.test, ByClient) else task.test)
    if task.start is not None:
        described["init"] = fingerprint(sorted(task.start.leaves.items()), task.start.fresh_last_layer)
    return described


def _test_digest(test: Any) -> str:
    """Return a digest of test data that does not depend on the order of examples, which follows their sites."""
    if not isinstance(test, Examples):
        return fingerprint(test)
    rows = zip(test.inputs.flatten(1).numpy(), test.labels.tolist(), strict=True)
    return fingerprint(sorted(hashlib.sha256(row.tobytes() + bytes([label])).hexdigest() for row, label in rows))


def needed_files(task: Task) -> dict[str, bytes]:
    """Return the files that the folder of a run needs to be resumed, by name."""
    return {} if task.start is None else {initial_model.FILE: task.start.to_bytes()}
