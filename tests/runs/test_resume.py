"""A run that was stopped, however and whenever, and resumed ends as if nothing had happened.

Processes are killed by SIGKILL at random moments, and before single file operations; what is in the folder
at the end must equal, bit by bit, what an uninterrupted run leaves.
"""

import json
import random
import shutil
import signal
import subprocess
import sys
import time

import pytest

from fedcso.runs import checkpoint
from fedcso.runs.folder import RunFolder
from tests import processes
from tests.command_line import (
    BAD_INPUT,
    BROKE_OFF,
    FINE,
    INTERRUPTED,
    LOGISTIC,
    QUADRATIC,
    assert_same_contents,
    call,
    contents,
    folders,
    interrupt_after,
    run,
    without_drawing,
)

KILLED = -signal.SIGKILL

EVERY_ROUND = ["--checkpoint-rounds", "1", "--participation", "0.5", "--seeds", "2", "--local-steps", "2"]
METHODS = ["--algorithm", "FCSG-M", "Acc-FCSG-M", "SCAFFOLD", "Local-SCGDM"]

LOGISTIC_UNLIKE = ["run", "invariant_logistic", "--unlike-truth", "0.5", "--clients", "4", "--test-points", "40"]
STACKED = [*LOGISTIC_UNLIKE, "--engine", "stacked", *METHODS, *EVERY_ROUND]
CLASSIFICATION = ["run", "classification", "--clients", "4", "--alpha", "0.5", *EVERY_ROUND]

COMMANDS = {
    "stacked": [*STACKED, "--rounds", "5"],
    "threads": [*CLASSIFICATION, "--engine", "threads", *METHODS, "--rounds", "2"],
    "reference": [*CLASSIFICATION, "--engine", "reference", *METHODS[:3], "--rounds", "4"],
}


def status(folder):
    return json.loads((folder / "status.json").read_text())["status"]


def checkpoints(folder):
    return sorted((folder / "checkpoints").rglob("*.safetensors"))


def made_in(place):
    """The run folder, once it has its name."""
    named = [path for path in folders(place / "runs") if not path.name.startswith(".")]
    return named[0] if named else None


def wait_until(condition, process):
    """What a condition gives as soon as it gives something; the process must still be at work."""
    while not (result := condition()):
        assert process.poll() is None
        time.sleep(0.002)
    return result


@pytest.fixture
def place(tmp_path):
    (tmp_path / "stopped").mkdir()
    return tmp_path / "stopped"


@pytest.fixture
def whole(tmp_path):
    """Makes the run folder of a command that is left in peace."""

    def make(command):
        (tmp_path / "whole").mkdir()
        assert processes.end(processes.start(tmp_path / "whole", *command)) == FINE
        return made_in(tmp_path / "whole")

    return make


def python_m_fedcso(place, *command):
    return subprocess.Popen(
        [sys.executable, "-m", "fedcso", *map(str, command)], cwd=place, stderr=subprocess.PIPE, text=True
    )


# --------------------------------------------------------------------------------------- SIGKILL

MAKING_A_FOLDER = 10
"""File operations until a run folder is there: three files with three operations each, and its name."""

MARKING_IT = 3
CHECKPOINTING = 10
"""A checkpoint and two tables with three operations each, and an old checkpoint removed."""

MOMENTS = [*range(MARKING_IT, MARKING_IT + CHECKPOINTING + 2), 30, 50]
"""Every single operation around the first checkpoint of a process, and some later ones."""


@pytest.mark.parametrize("engine", COMMANDS)
def test_killed_before_any_file_operation_it_ends_the_same(place, whole, engine):
    command = COMMANDS[engine]
    moments = MOMENTS if engine == "stacked" else MOMENTS[::5]
    first = processes.start(place, *command, dies_at=MAKING_A_FOLDER + CHECKPOINTING)
    assert processes.end(first) == KILLED
    folder = made_in(place)
    for moment in moments:
        assert processes.end(processes.start(place, "resume", folder, dies_at=moment)) == KILLED
        assert status(folder) == "running"
    assert processes.end(processes.start(place, "resume", folder)) == FINE
    assert status(folder) == "done"
    assert_same_contents(folder, whole(command))


def test_killed_at_any_time_it_ends_the_same(place, whole):
    command = [*STACKED, "--rounds", "25"]
    rng = random.Random(0)
    process = python_m_fedcso(place, *command)
    folder = wait_until(lambda: made_in(place), process)
    time.sleep(rng.uniform(0.0, 0.3))
    process.kill()
    process.communicate()
    assert process.returncode == KILLED
    codes = []
    for _ in range(5):
        process = processes.start(place, "resume", folder)
        time.sleep(rng.uniform(0.1, 0.4))
        process.kill()
        codes.append(processes.end(process))
    assert KILLED in codes
    assert processes.end(processes.start(place, "resume", folder)) == FINE
    assert_same_contents(folder, whole(command))


@pytest.mark.parametrize("moment", range(1, MAKING_A_FOLDER + 1))
def test_killed_while_its_folder_is_made_it_leaves_none(place, moment):
    assert processes.end(processes.start(place, "run", *QUADRATIC, dies_at=moment)) == KILLED
    assert made_in(place) is None
    for leftover in folders(place / "runs"):
        for command in ("resume", "report", "compare"):
            outcome = call(command, leftover)
            assert outcome.code == BAD_INPUT, f"{command} {leftover}: {outcome.err}"


# ---------------------------------------------------------------------------- SIGINT and SIGTERM


def test_ctrl_c_ends_with_130_and_says_how_to_go_on(place, whole):
    command = [*LOGISTIC_UNLIKE, "--algorithm", "Acc-FCSG-M", "--rounds", "150", "--checkpoint-rounds", "10"]
    process = python_m_fedcso(place, *command)
    wait_until(lambda: made_in(place) and checkpoints(made_in(place)), process)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate()
    folder = made_in(place)
    assert process.returncode == INTERRUPTED
    assert said.splitlines()[-1].endswith(f"To continue: fedcso resume {folder.relative_to(place)}")
    assert "Traceback" not in said
    assert status(folder) == "interrupted"
    assert processes.end(processes.start(place, "resume", folder)) == FINE
    assert status(folder) == "done"
    assert_same_contents(folder, whole(command))


ENGINES = {
    "stacked": [*LOGISTIC, "--engine", "stacked"],
    "threads": [*LOGISTIC, "--engine", "threads"],
    "reference": [*QUADRATIC, "--engine", "reference"],
}


@pytest.fixture
def interrupted(tmp_path, monkeypatch):
    """A run folder interrupted in this process after some rounds, and the same run left in peace."""
    without_drawing(monkeypatch)
    monkeypatch.chdir(tmp_path)

    def make(*command, rounds=2, **options):
        expected = run(*command, out=tmp_path / "runs")
        shutil.move(expected, tmp_path / "expected")
        with monkeypatch.context() as patch:
            interrupt_after(patch, rounds, **options)
            folder = run(*command, out=tmp_path / "runs", code=INTERRUPTED)
        return folder, tmp_path / "expected"

    return make


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("unit", ["FCSG", "Acc"])
def test_interrupted_between_rounds_it_ends_the_same(interrupted, engine, unit):
    folder, expected = interrupted("run", *ENGINES[engine], unit=unit)
    assert status(folder) == "interrupted"
    assert call("resume", folder).code == FINE
    assert_same_contents(folder, expected)


def test_what_was_found_so_far_is_there_when_it_is_interrupted(interrupted):
    folder, expected = interrupted("run", *LOGISTIC, unit="FCSG")
    so_far = contents(folder)["metrics.csv"]
    assert so_far
    assert all(row in contents(expected)["metrics.csv"] for row in so_far)
    assert call("report", folder).code == FINE


def test_a_second_ctrl_c_ends_at_once_and_says_how_to_go_on(tmp_path, monkeypatch):
    without_drawing(monkeypatch)
    with monkeypatch.context() as patch:
        interrupt_after(patch, rounds=2, times=2)
        outcome = call("run", *LOGISTIC, "--out", tmp_path)
    (folder,) = folders(tmp_path)
    assert outcome.code == INTERRUPTED
    assert f"stopped at once, after the last checkpoint. To continue: fedcso resume {folder}" in outcome.err
    assert status(folder) == "interrupted"
    assert call("resume", folder).code == FINE


def test_a_run_may_be_interrupted_again_and_again(interrupted, monkeypatch):
    command = ["run", *LOGISTIC, "--algorithm", "Acc-FCSG-M", "--rounds", "5"]
    folder, expected = interrupted(*command, rounds=1)
    for rounds in (2, 3, 4):
        with monkeypatch.context() as patch:
            interrupt_after(patch, rounds)
            assert call("resume", folder).code == INTERRUPTED
    assert call("resume", folder).code == FINE
    assert_same_contents(folder, expected)


def test_a_run_that_broke_off_stays_so_when_resumed(tmp_path, monkeypatch):
    without_drawing(monkeypatch)
    command = ["run", *QUADRATIC, "--algorithm", "FCSG", "FCSG(learning_rate=1e200)"]
    folder = run(*command, out=tmp_path, code=BROKE_OFF)
    before = contents(folder)
    assert call("resume", folder).code == BROKE_OFF
    assert contents(folder) == before
    assert status(folder) == "failed"


def test_resuming_a_finished_run_changes_nothing(tmp_path, monkeypatch):
    without_drawing(monkeypatch)
    folder = run("run", *QUADRATIC, out=tmp_path)
    before = contents(folder)
    assert call("resume", folder).code == FINE
    assert contents(folder) == before


# ----------------------------------------------------------------------------------------- damage


@pytest.mark.parametrize("every", [False, True])
def test_with_damaged_checkpoints_it_ends_the_same(interrupted, every):
    command = ["run", *LOGISTIC, "--algorithm", "Acc-FCSG-M", "--rounds", "6", "--checkpoint-rounds", "1"]
    folder, expected = interrupted(*command, rounds=4)
    damaged = checkpoints(folder) if every else checkpoints(folder)[-1:]
    assert len(checkpoints(folder)) == checkpoint.KEEP
    for path in damaged:
        content = bytearray(path.read_bytes())
        content[-1] ^= 1
        path.write_bytes(content)
    outcome = call("resume", folder)
    assert outcome.code == FINE
    assert f"{damaged[-1]} is damaged" in outcome.err
    assert_same_contents(folder, expected)


def test_what_killed_processes_left_half_written_is_cleared_away(interrupted):
    folder, _ = interrupted("run", *LOGISTIC)
    half_written = [
        folder / ".metrics.csv.x7f2k9ab",
        checkpoints(folder)[0].parent / ".0000001-0f.safetensors.ab12cd34",
    ]
    for path in half_written:
        path.write_text("half of it")
    assert call("resume", folder).code == FINE
    assert not any(path.exists() for path in half_written)


MISSING = {
    "no settings": ["config.yaml"],
    "no status": ["status.json"],
    "neither": ["config.yaml", "status.json"],
}


@pytest.mark.parametrize("missing", MISSING)
@pytest.mark.parametrize("command", ["resume", "report", "compare"])
def test_a_folder_that_is_not_whole_is_refused(tmp_path, command, missing):
    folder = RunFolder.create(tmp_path, "run", {"command": "run"}, {}).path
    for name in MISSING[missing]:
        (folder / name).unlink()
    outcome = call(command, folder)
    assert outcome.code == BAD_INPUT
    assert f"{folder} is not a run folder" in outcome.err


BROKEN = {
    "no YAML": "a: [1",
    "a list": "- run\n",
    "empty": "",
    "of a command that can't be resumed": "command: walk\n",
    "without a problem": "command: run\n",
}


@pytest.mark.parametrize("broken", BROKEN)
def test_resuming_with_broken_settings_says_where(tmp_path, broken):
    folder = RunFolder.create(tmp_path, "run", {"command": "run"}, {}).path
    (folder / "config.yaml").write_text(BROKEN[broken])
    outcome = call("resume", folder)
    assert outcome.code == BAD_INPUT
    assert "config.yaml" in outcome.err


def test_two_processes_do_not_work_in_one_folder(tmp_path, monkeypatch):
    without_drawing(monkeypatch)
    folder = run("run", *QUADRATIC, out=tmp_path)
    with RunFolder(folder).alone():
        outcome = call("resume", folder)
    assert outcome.code == BAD_INPUT
    assert f"another process is using {folder}" in outcome.err
    assert call("resume", folder).code == FINE


# -------------------------------------------------------------------------------- what it depends on

OWN = """
from dataclasses import dataclass
from pathlib import Path

import torch
from fedcso import Task
from fedcso.algorithms import FCSG
from fedcso.problems import NestedQuadratic

def task():
    value = float(Path("value.txt").read_text())
    return Task(NestedQuadratic(2), list(torch.full((2, 2), value, dtype=torch.float64)))

@dataclass(frozen=True)
class Mine(FCSG):
    friction: float = 0.5
"""
FEW = ["--rounds", "3", "--seeds", "1"]


@pytest.fixture
def own(tmp_path):
    (tmp_path / "value.txt").write_text("1.0")
    (tmp_path / "own.py").write_text(OWN)
    return tmp_path / "own.py"


def test_a_run_on_other_data_is_not_resumed(interrupted, own):
    folder, _ = interrupted("run", "own.py:task", *FEW)
    own.with_name("value.txt").write_text("2.0")
    outcome = call("resume", folder)
    assert outcome.code == BAD_INPUT
    assert "was started with other data" in outcome.err


COMMANDS_OF_OWN = {
    "problem": ["run", "own.py:task", *FEW, "--algorithm", "FCSG"],
    "method": ["run", *QUADRATIC, "--algorithm", "own.py:Mine", "own.py:Mine(friction=0.1)"],
    "module": ["run", "own:task", *FEW, "--algorithm", "FCSG"],
    "sweep": ["sweep", *QUADRATIC, "--algorithm", "own.py:Mine", "--grid", "friction=0.1,0.2"],
}


@pytest.mark.parametrize("what", COMMANDS_OF_OWN)
def test_a_run_is_not_resumed_after_ones_own_file_has_changed(interrupted, own, monkeypatch, what):
    monkeypatch.syspath_prepend(str(own.parent))
    monkeypatch.delitem(sys.modules, "own", raising=False)
    folder, expected = interrupted(*COMMANDS_OF_OWN[what])
    (kept,) = (folder / "sources").iterdir()
    assert kept.read_text() == OWN
    own.write_text(OWN.replace("0.5", "0.6"))
    outcome = call("resume", folder)
    assert outcome.code == BAD_INPUT
    name = own if what == "module" else own.name
    assert f"{name} has changed since {folder} was started" in outcome.err
    assert f"cp {kept} {name}" in outcome.err
    own.unlink()
    assert f"{name}, which {folder} depends on, is missing" in call("resume", folder).err
    shutil.copy(kept, own)
    assert call("resume", folder).code == FINE
    assert_same_contents(folder, expected)


def test_a_folder_of_an_earlier_version_says_nothing_about_files_and_is_resumed(interrupted, own):
    folder, _ = interrupted("run", "own.py:task", *FEW)
    environment = json.loads((folder / "env.json").read_text())
    del environment["sources"]
    (folder / "env.json").write_text(json.dumps(environment))
    assert call("resume", folder).code == FINE
