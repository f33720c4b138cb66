"""Units of work: results by setting and seed, checkpoints in between, failures kept, nothing done twice."""

import signal
import threading
from dataclasses import replace

import pytest
import torch

from fedcso.algorithms import FCSG, FCSGM, Scaffold
from fedcso.core.errors import FedcsoError, InvalidValue
from fedcso.core.plan import Plan
from fedcso.core.task import Task
from fedcso.core.trace import Trace
from fedcso.engines import ENGINES as EVERY_ENGINE
from fedcso.runs import checkpoint
from fedcso.runs.callbacks import Interrupted, Rhythm
from fedcso.runs.study import Study, Unit, parts, seconds
from fedcso.runs.tracking import Silent
from tests import helpers
from tests.helpers import NEVER, Clock, assert_same_run, run_on

CASE = helpers.nested_quadratic()
TASK = Task(CASE.problem, CASE.clients)
ONE_SETTING = [FCSGM(0.05, 0.3)]
PLAN = Plan(rounds=4, local_steps=2, participation=0.5)
SEEDS = [3, 8]
ENGINES = ["stacked", "threads", "reference"]
INTERRUPTION_AT = 2


class Watch:
    """A display that remembers what it was told, and may do something after a round."""

    def __init__(self, then=lambda name, done: None):
        self.told, self.then, self.open = [], then, 0

    def update(self, name, done, total, note):
        self.told.append((name, done, total, note))
        self.then(name, done)

    def __enter__(self):
        self.open += 1
        return self

    def __exit__(self, *_):
        self.open -= 1


def unit(name="A", algorithms=ONE_SETTING, engine="stacked", task=TASK, plan=PLAN):
    return Unit(name, task, plan, list(algorithms), SEEDS, engine=engine)


def press_ctrl_c(at=INTERRUPTION_AT):
    def then(name, done):
        if done == at:
            signal.raise_signal(signal.SIGINT)

    return Watch(then)


def execute(study, display=None, **options):
    return study.execute(display or Watch(), Silent(), **options)


@pytest.mark.parametrize("engine", ENGINES)
def test_results_are_by_unit_setting_and_seed(tmp_path, engine):
    algorithms = [FCSGM(0.05, 0.3), FCSGM(0.1, 0.3)]
    found = execute(Study([unit(algorithms=algorithms, engine=engine), unit("B", [FCSG(0.05)])], tmp_path))
    assert list(found) == ["A", "B"]
    for algorithm, traces in zip(algorithms, found["A"], strict=True):
        for seed, trace in zip(SEEDS, traces, strict=True):
            assert_same_run(trace, run_on("reference", algorithm, CASE, PLAN, seed))


def test_small_models_are_one_part_and_others_a_part_for_each_run():
    algorithms = [FCSG(0.1), FCSG(0.2)]
    assert [part.folder for part in parts(unit(algorithms=algorithms, engine="simulation"))] == ["all"]
    assert [part.folder for part in parts(unit(algorithms=algorithms, engine="threads"))] == [
        *("setting0-seed3", "setting0-seed8", "setting1-seed3", "setting1-seed8")
    ]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_finished_study_is_not_carried_out_again(tmp_path, engine):
    study = Study([unit(engine=engine)], tmp_path)
    found, display = execute(study), Watch()
    again = execute(study, display)
    assert [note for *_, note in display.told] == ["already done"] * (1 if engine == "stacked" else len(SEEDS))
    for trace, other in zip(found["A"][0], again["A"][0], strict=True):
        assert_same_run(trace, other, tolerance=0.0)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("algorithm", [FCSGM(0.05, 0.3), Scaffold(0.05)])
def test_interrupted_and_continued_it_ends_the_same(tmp_path, engine, algorithm):
    expected = execute(Study([unit(algorithms=[algorithm], engine=engine)], tmp_path / "whole"))
    study = Study([unit(algorithms=[algorithm], engine=engine)], tmp_path / "parts")
    display = press_ctrl_c()
    with pytest.raises(Interrupted, match=f"stopped after round {INTERRUPTION_AT} of 4 of A"):
        execute(study, display)
    assert display.open == 0
    found = execute(study)
    for trace, other in zip(found["A"][0], expected["A"][0], strict=True):
        assert_same_run(trace, other, tolerance=0.0)


def test_what_is_there_so_far_can_be_collected(tmp_path):
    study = Study([unit(), unit("B")], tmp_path)
    assert study.collect() == {"A": [], "B": []}
    with pytest.raises(Interrupted):
        execute(study, press_ctrl_c())
    found = study.collect()
    assert found["B"] == []
    assert [trace.rows[-1]["round"] for trace in found["A"][0]] == [INTERRUPTION_AT] * len(SEEDS)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_and_a_request_to_end_are_the_same(tmp_path, number):
    display = Watch(lambda name, done: done == 1 and signal.raise_signal(number))
    before = signal.getsignal(number)
    with pytest.raises(Interrupted):
        execute(Study([unit()], tmp_path), display)
    assert signal.getsignal(number) is before


def test_in_the_last_round_an_interruption_is_too_late_for_its_unit(tmp_path):
    study = Study([unit()], tmp_path)
    found = execute(study, press_ctrl_c(at=PLAN.rounds))
    assert found["A"][0][0].rows[-1]["round"] == PLAN.rounds


def test_between_units_an_interruption_stops_the_next(tmp_path):
    study = Study([unit(), unit("B")], tmp_path)
    with pytest.raises(Interrupted, match="of B"):
        execute(study, press_ctrl_c(at=PLAN.rounds))
    assert study.collect()["A"][0][0].rows[-1]["round"] == PLAN.rounds


def test_it_may_run_outside_of_the_main_thread(tmp_path):
    found = {}
    thread = threading.Thread(target=lambda: found.update(execute(Study([unit()], tmp_path))))
    thread.start()
    thread.join()
    assert len(found["A"][0]) == len(SEEDS)


# ------------------------------------------------------------------------------------ checkpoints


def saved_rounds(tmp_path, monkeypatch, rhythm, rounds=7):
    saved, save = [], checkpoint.save

    def note(folder, snapshot):
        saved.append(snapshot.done)
        save(folder, snapshot)

    monkeypatch.setattr(checkpoint, "save", note)
    called = []
    study = Study([unit(plan=replace(PLAN, rounds=rounds))], tmp_path, rhythm)
    execute(study, on_checkpoint=lambda: called.append(1))
    assert len(called) == len(saved)
    return saved


@pytest.mark.parametrize(
    ("rhythm", "saved"),
    [
        (Rhythm(), [7]),
        (Rhythm(rounds=1), [1, 2, 3, 4, 5, 6, 7]),
        (Rhythm(rounds=3), [3, 6, 7]),
        (Rhythm(rounds=100), [7]),
        (Rhythm(seconds=0.0), [1, 2, 3, 4, 5, 6, 7]),
    ],
)
def test_checkpoints_come_by_rounds_or_by_the_clock_and_at_the_end(tmp_path, monkeypatch, rhythm, saved):
    assert saved_rounds(tmp_path, monkeypatch, rhythm) == saved


def test_units_have_folders_of_their_own(tmp_path):
    names = ["FCSG-M(momentum=0.5)", "FCSG-M(momentum=0.1)", "tune x/y ../z"]
    execute(Study([unit(name) for name in names], tmp_path / "checkpoints"))
    made = list((tmp_path / "checkpoints").iterdir())
    assert len(made) == len(names)
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoints"]


@pytest.mark.parametrize("names", [("own/a.py:X", "own_a.py:X"), ("A", "A")])
def test_units_that_would_share_a_folder_are_refused(tmp_path, names):
    with pytest.raises(FedcsoError, match=f"{names[0]!r} and {names[1]!r} would share checkpoints"):
        Study([unit(name) for name in names], tmp_path)


# -------------------------------------------------------------------------------------- breaking off


def clocks(*times):
    return Task(Clock(), list(times))


@pytest.mark.parametrize("engine", ENGINES)
def test_a_run_that_breaks_off_does_not_stop_the_others(tmp_path, engine, caplog):
    broken = unit("A", [FCSG(1.0)], engine, clocks(NEVER, 3.0), replace(PLAN, participation=1.0))
    display = Watch()
    found = execute(Study([broken, unit("B")], tmp_path), display)
    for seed, trace in zip(SEEDS, found["A"][0], strict=True):
        assert f"client 1, round 1, step 3 (seed {seed})" in str(trace.failure)
        assert trace.rows[-1]["round"] == 1
        assert f"client 1, round 1, step 3 (seed {seed})" in caplog.text
    assert all(trace.failure is None for trace in found["B"][0])
    assert ("A", "broke off") in {(name.split()[0], note) for name, _, _, note in display.told}


@pytest.mark.parametrize("engine", ENGINES)
def test_a_run_that_broke_off_is_not_tried_again(tmp_path, engine):
    broken = unit("A", [FCSG(1.0)], engine, clocks(NEVER, 3.0), replace(PLAN, participation=1.0))
    study = Study([broken], tmp_path)
    first, display = execute(study), Watch()
    again = execute(study, display)
    assert {note for *_, note in display.told} == {"already done"}
    for trace, other in zip(first["A"][0], again["A"][0], strict=True):
        assert str(trace.failure) == str(other.failure)
        assert torch.equal(trace.last, other.last)


def test_a_grid_goes_on_with_the_settings_that_are_left(tmp_path):
    # With step size 1 the clock strikes in round 1, with 0.1 it never does.
    grid = unit("A", [FCSG(1.0), FCSG(0.1)], "stacked", clocks(3.0), replace(PLAN, participation=1.0))
    study = Study([grid], tmp_path)
    with pytest.raises(Interrupted):
        execute(study, press_ctrl_c(at=3))
    found = execute(study)
    assert all("round 1, step 3" in str(trace.failure) for trace in found["A"][0])
    assert [trace.rows[-1]["round"] for trace in found["A"][1]] == [PLAN.rounds] * len(SEEDS)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_mistake_in_the_plan_is_no_run_that_broke_off(tmp_path, engine):
    wrong = unit(engine=engine, plan=replace(PLAN, participation=99))
    with pytest.raises(InvalidValue, match="participation = 99"):
        execute(Study([wrong], tmp_path))


def test_an_error_in_an_engine_is_not_hidden(tmp_path, monkeypatch):
    def broken(*_, **__):
        raise RuntimeError("a bug")

    monkeypatch.setitem(EVERY_ENGINE, "stacked", replace(EVERY_ENGINE["stacked"], start=broken))
    display = Watch()
    with pytest.raises(RuntimeError, match="a bug"):
        execute(Study([unit()], tmp_path), display)
    assert display.open == 0


# ----------------------------------------------------------------------------------------- progress


def test_progress_says_rounds_metric_and_bytes(tmp_path):
    display = Watch()
    execute(Study([unit()], tmp_path), display)
    assert [(name, done, total) for name, done, total, _ in display.told] == [("A", r, 4) for r in range(5)]
    assert all(note.startswith("loss ") and note.endswith(" MB") for *_, note in display.told[1:])


def test_runs_of_one_unit_are_told_apart_where_they_go_one_by_one(tmp_path):
    display = Watch()
    execute(Study([unit(engine="reference")], tmp_path), display)
    assert {name for name, *_ in display.told} == {"A setting0-seed3", "A setting0-seed8"}


def test_runs_go_seed_by_seed_through_all_units(tmp_path):
    display = Watch()
    execute(Study([unit("A", engine="reference"), unit("B", engine="reference")], tmp_path), display)
    played = list(dict.fromkeys(name for name, *_ in display.told))
    assert [name.replace(" setting0-seed", "") for name in played] == ["A3", "B3", "A8", "B8"]


def test_the_tracker_is_told_every_round(tmp_path):
    told = []

    class Tracker(Silent):
        def log(self, unit, seeds, progress):
            told.append((unit, seeds, progress.done))

    Study([unit()], tmp_path).execute(Watch(), Tracker())
    assert told == [("A", SEEDS, r) for r in range(1, PLAN.rounds + 1)]


# ------------------------------------------------------------------------------------------- seconds


def took(*clocks):
    return [Trace(rows=[{"seconds": 0.0}, {"seconds": clock}]) for clock in clocks]


def test_runs_that_are_played_together_share_one_clock():
    together, alone = unit("A", [FCSG(0.1), FCSG(0.2)], "stacked"), unit("B", [FCSG(0.1), FCSG(0.2)], "reference")
    found = {"A": [took(7.0, 7.0), took(7.0, 6.5)], "B": [took(1.0, 2.0), took(3.0, 4.0)]}
    assert seconds([together], found) == 7.0
    assert seconds([alone], found) == 10.0
    assert seconds([together, alone], found) == 17.0
