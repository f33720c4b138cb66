"""Parts of a study in several processes: the same results, all progress, and a study that ends whatever happens."""

import os
import signal
import threading
from dataclasses import replace

import pytest

from fedcso.algorithms import FCSG, FCSGM
from fedcso.core.errors import FedcsoError
from fedcso.runs.callbacks import Interrupted
from fedcso.runs.side_by_side import spread
from fedcso.runs.study import Study
from tests.helpers import assert_same_run
from tests.runs.test_study import PLAN, TASK, Watch, execute, unit

PROCESSES = 2


def carry_out(number, work, display=None, requested=None):
    spread(number, work, PROCESSES, requested or threading.Event())(display or Watch())


def test_all_work_is_done_once_each_piece_on_one_core(tmp_path):
    def work(number, display):
        cores = os.sched_getaffinity(0)
        assert len(cores) == 1
        (tmp_path / f"{number}").touch(exist_ok=False)
        display.update(f"part {number}", 1, 1, "")

    display = Watch()
    carry_out(5, work, display)
    assert {path.name for path in tmp_path.iterdir()} == {*"01234"}
    assert {name for name, *_ in display.told} == {f"part {number}" for number in range(5)}


def test_an_error_that_the_parent_will_meet_too_does_not_keep_others_from_their_work(tmp_path):
    def work(number, display):
        if number == 0:
            raise FedcsoError("no")
        (tmp_path / f"{number}").touch()

    carry_out(4, work)
    assert len(list(tmp_path.iterdir())) == 3


def test_without_processes_that_live_it_ends(tmp_path):
    carry_out(4, lambda number, display: os.kill(os.getpid(), signal.SIGKILL))


def test_processes_end_when_their_parent_has_died():
    """A process that sends progress, or waits for work, notices that nobody is there."""
    ours, theirs = os.pipe()
    parent = os.fork()
    if not parent:
        os.close(ours)

        def work(number, display):
            if number == 0:
                os.kill(os.getppid(), signal.SIGKILL)
            while True:
                display.update("", 0, 1, "")

        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # the tracebacks of broken pipes
        carry_out(2, work)
        os._exit(1)
    os.close(theirs)
    assert os.WTERMSIG(os.waitpid(parent, 0)[1]) == signal.SIGKILL
    assert os.read(ours, 1) == b""  # which needs every process to have closed its end


def test_a_study_has_the_same_results_as_with_one_process(tmp_path):
    def units():
        return [unit("A", engine="threads"), unit("B", [FCSG(0.05), FCSG(0.1)])]

    expected = execute(Study(units(), tmp_path / "one"))
    display = Watch()
    found = execute(Study(units(), tmp_path / "two", processes=PROCESSES), display)
    assert {note for _, done, total, note in display.told if done == total} > {"already done"}
    for name, by_setting in expected.items():
        for ours, theirs in zip(found[name], by_setting, strict=True):
            for one, other in zip(ours, theirs, strict=True):
                assert_same_run(one, other, tolerance=0.0)


def test_what_runs_leave_is_saved_where_they_ran(tmp_path):
    def saved(part, traces):
        (tmp_path / part.key.replace("/", " ")).write_text(f"{os.getpid()}")

    study = Study([unit("A"), unit("B")], tmp_path / "c", on_finished=saved, processes=PROCESSES)
    execute(study)
    assert {path.name for path in tmp_path.iterdir()} == {"A all", "B all", "c"}


def test_an_error_is_raised_as_with_one_process(tmp_path):
    broken = unit("A", [FCSGM(0.05, 0.3)], engine="stacked", task=replace(TASK, clients=[]))
    with pytest.raises(FedcsoError) as alone:
        execute(Study([broken, unit("B")], tmp_path / "one"))
    with pytest.raises(FedcsoError, match=str(alone.value)):
        execute(Study([broken, unit("B")], tmp_path / "two", processes=PROCESSES))


def once(action):
    """Act when the first round of any part is shown; a second request would stop at once."""
    told = []

    def then(name, done):
        if done and not told:
            told.append(name)
            action()

    return then


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_request_to_stop_reaches_all_processes_and_the_study_goes_on_later(tmp_path, number):
    long = replace(PLAN, rounds=500, evaluate_every=500)
    units = [unit("A", plan=long), unit("B", plan=long)]
    expected = execute(Study(units, tmp_path / "whole"))
    study = Study(units, tmp_path / "parts", processes=PROCESSES)
    with pytest.raises(Interrupted, match="stopped after the rounds"):
        execute(study, Watch(once(lambda: signal.raise_signal(number))))
    left = [trace for by_setting in study.collect().values() for traces in by_setting for trace in traces]
    stopped = [trace.rows[-1]["round"] for trace in left]  # of those that had begun
    found = execute(study)
    assert all(round < long.rounds for round in stopped)
    for name, (theirs,) in expected.items():
        for one, other in zip(found[name][0], theirs, strict=True):
            assert_same_run(one, other, tolerance=0.0)
