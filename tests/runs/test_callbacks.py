"""Callbacks, each given to a run by itself: what it does after a round, and what it leaves alone."""

import threading

import pytest

from fedcso.algorithms.fcsg import FCSG
from fedcso.core.errors import InvalidValue
from fedcso.core.plan import Plan
from fedcso.core.trace import Trace
from fedcso.engines import run
from fedcso.runs import checkpoint
from fedcso.runs.callbacks import Checkpoint, Interrupted, Rhythm, Show, StopOnRequest, Track, WarnOfCollapse
from tests.declared import RANKED
from tests.helpers import assert_same_run, nested_quadratic

TASK = nested_quadratic()
PLAN = Plan(rounds=5, local_steps=2)
PRECISION = "validation_average_precision"


def play(*callbacks, start=None):
    return run(FCSG(0.05), TASK, PLAN, seed=3, callbacks=callbacks, start=start)


@pytest.fixture(scope="module")
def whole():
    return play()


def test_a_checkpoint_is_what_a_run_goes_on_from(tmp_path, whole):
    saved = []
    keep = Checkpoint(tmp_path, Rhythm(rounds=2), then=lambda: saved.append(checkpoint.newest(tmp_path)))
    assert_same_run(play(keep), whole, tolerance=0.0)
    assert [snapshot.done for snapshot in saved] == [2, 4, 5]
    assert_same_run(play(start=saved[0]), whole, tolerance=0.0)


def test_a_checkpoint_counts_rounds_from_where_it_began(tmp_path):
    snapshots, saved = [], []
    play(lambda progress: snapshots.append(progress.snapshot()))
    keep = Checkpoint(tmp_path, Rhythm(rounds=3), done=1, then=lambda: saved.append(checkpoint.newest(tmp_path)))
    play(keep, start=snapshots[0])
    assert [snapshot.done for snapshot in saved] == [4, 5]


@pytest.mark.parametrize(
    ("settings", "told"), [({"rounds": -1}, "checkpoint_rounds"), ({"seconds": -1.0}, "checkpoint_seconds")]
)
def test_a_rhythm_is_not_negative(settings, told):
    with pytest.raises(InvalidValue, match=told):
        Rhythm(**settings)


def test_a_run_stops_when_that_was_asked_for_and_all_is_saved(tmp_path, whole):
    requested = threading.Event()
    keep = Checkpoint(tmp_path, Rhythm(seconds=1000.0))

    def ask(progress):
        if progress.done == 3:
            requested.set()

    with pytest.raises(Interrupted, match="stopped after round 3 of 5 of FCSG"):
        play(ask, keep, StopOnRequest(requested, keep, "FCSG", PLAN.rounds))
    start = checkpoint.newest(tmp_path)
    assert start.done == 3
    assert_same_run(play(start=start), whole, tolerance=0.0)


def test_after_the_last_round_it_is_too_late_to_stop(tmp_path, whole):
    requested = threading.Event()
    keep = Checkpoint(tmp_path, Rhythm())

    def ask(progress):
        if progress.over:
            requested.set()

    assert_same_run(play(ask, keep, StopOnRequest(requested, keep, "FCSG", PLAN.rounds)), whole, tolerance=0.0)


class Board:
    """A display and a tracker that take notes."""

    def __init__(self):
        self.told = []

    def update(self, name, done, total, note):
        self.told.append((name, done, total, note.split()[0]))

    def log(self, unit, seeds, progress):
        self.told.append((unit, seeds, progress.done))


def test_every_round_is_shown_with_its_metric():
    board = Board()
    play(Show(board, "FCSG", PLAN.rounds))
    assert board.told == [("FCSG", done, 5, "loss") for done in range(1, 6)]


def test_every_round_is_tracked():
    board = Board()
    play(Track(board, "FCSG", [3]))
    assert board.told == [("FCSG", [3], done) for done in range(1, 6)]


def test_a_collapse_is_told_once(caplog):
    class Progress:
        declared = RANKED
        traces = (
            Trace(rows=[{"round": r, PRECISION: value} for r, value in enumerate((0.1, 0.9, 0.2, 0.1))]),
            Trace(rows=[{"round": r, PRECISION: 0.1 * r} for r in range(4)]),
        )

    warn = WarnOfCollapse("FCSG", [7, 8])
    warn(Progress)
    warn(Progress)
    assert [record.getMessage().partition(" collapsed")[0] for record in caplog.records] == ["FCSG, seed 7"]
