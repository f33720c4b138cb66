"""Processes started by the command line itself: they finish, are killed, are interrupted, and go on."""

import math
import os
import re
import signal
import time
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from fedcso.cli.main import main
from fedcso.reports import figures
from fedcso.runs import launch
from tests import processes
from tests.command_line import BAD_INPUT, BROKE_OFF, FINE, INTERRUPTED, QUADRATIC, call, folders, read_csv
from tests.over_ranks import play, said

COMMAND = ["run", "nested_quadratic", "--clients", "5", "--participation", "3", "--seeds", "1", "--local-steps", "2"]
METHOD = ["--algorithm", "SCAFFOLD", "--learning-rate", "0.01"]
LONG = [*COMMAND, *METHOD, "--rounds", "150", "--checkpoint-rounds", "5"]


def ranks_of(process: BaseProcess) -> dict[int, int]:
    """The processes that a launcher has started, by rank."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    found = {}
    for child in children:
        environment = Path(f"/proc/{child}/environ").read_bytes().decode()
        if rank := re.search(r"(?:^|\0)RANK=(\d+)", environment):
            found[int(rank[1])] = int(child)
    return found


def after_a_checkpoint(place: Path, process: BaseProcess) -> Path:
    """The run folder, as soon as there is something in it to go on from."""
    while True:
        assert process.is_alive(), said_in(place)
        for folder in folders(place / "runs"):
            if list((folder / "checkpoints").rglob("*.safetensors")):
                return folder
        time.sleep(0.01)


def said_in(place: Path) -> str:
    return (place / "said.txt").read_text()


def resume(folder: Path) -> None:
    """Resume a run as one of its ranks, as the launcher makes every rank do."""
    figures.render = lambda figure, kind: b""
    assert main(["resume", str(folder)]) == FINE


def rows(folder: Path) -> list[dict[str, str]]:
    return read_csv(folder / "metrics.csv")


def assert_same_numbers(folder: Path, expected: Path) -> None:
    """But for the order of additions, and the time."""
    found, wanted = rows(folder), rows(expected)
    assert len(found) == len(wanted)
    for row, other in zip(found, wanted, strict=True):
        for name in row.keys() - {"seconds"}:
            if row[name] != other[name]:
                assert math.isclose(float(row[name]), float(other[name]), rel_tol=1e-9), name


@pytest.fixture(scope="module")
def simulated(tmp_path_factory):
    place = tmp_path_factory.mktemp("simulated")
    assert call(*LONG, "--engine", "threads", "--out", place).code == FINE
    return folders(place)[0]


def kill_a_rank(place: Path, victim: int, ranks: int) -> Path:
    """Kill a rank of a run and return the folder, after the launcher has said whose death ended it."""
    launcher = processes.start(place, *LONG, "--engine", "distributed", "--ranks", ranks)
    folder = after_a_checkpoint(place, launcher)
    os.kill(ranks_of(launcher)[victim], signal.SIGKILL)
    assert processes.end(launcher) == BROKE_OFF, said_in(place)
    assert re.search(rf"rank {victim} of {ranks} was killed by SIGKILL.*resume \S*{folder.name}", said_in(place))
    assert "Traceback" not in said_in(place)
    return folder


def test_a_run_of_which_a_follower_was_killed_is_resumed_with_fewer_ranks(tmp_path, simulated):
    folder = kill_a_rank(tmp_path, victim=1, ranks=3)
    assert processes.end(processes.start(tmp_path, "resume", folder, "--ranks", 2)) == FINE, said_in(tmp_path)
    assert_same_numbers(folder, simulated)


def test_a_run_of_which_the_leader_was_killed_is_resumed_by_one_rank(tmp_path, simulated):
    folder = kill_a_rank(tmp_path, victim=0, ranks=2)
    assert play(1, resume, folder, place=tmp_path) == [0], said(tmp_path)
    assert_same_numbers(folder, simulated)


def test_ctrl_c_stops_all_ranks_after_a_checkpoint(tmp_path, simulated):
    launcher = processes.start(tmp_path, *LONG, "--engine", "distributed", "--ranks", 2)
    folder = after_a_checkpoint(tmp_path, launcher)
    os.kill(launcher.pid, signal.SIGINT)
    assert processes.end(launcher) == INTERRUPTED, said_in(tmp_path)
    assert "To continue: fedcso resume" in said_in(tmp_path)
    assert "Traceback" not in said_in(tmp_path)
    assert '"interrupted"' in (folder / "status.json").read_text()
    assert play(2, resume, folder, place=tmp_path) == [0, 0], said(tmp_path)
    assert_same_numbers(folder, simulated)


def test_the_command_for_several_hosts():
    command = launch.for_several_hosts(4, ["run", "classification", "--name", "my run"])
    assert command.startswith("torchrun --nnodes H --node-rank K --master-addr HOST --master-port")
    assert command.endswith("--nproc-per-node 4 -m fedcso run classification --name 'my run'")


@pytest.mark.parametrize("ranks", [0, -1])
def test_ranks_are_a_count(ranks, tmp_path):
    outcome = call("run", *QUADRATIC, "--engine", "distributed", "--ranks", ranks, "--out", tmp_path)
    assert outcome.code == BAD_INPUT
    assert "ranks" in outcome.err


def test_ranks_are_for_the_engine_that_has_some(tmp_path):
    outcome = call("run", *QUADRATIC, "--ranks", 2, "--out", tmp_path)
    assert outcome.code == BAD_INPUT
    assert "ranks = 2 must be left out: only the engine distributed has ranks, not simulation" in outcome.err
    assert not folders(tmp_path)


def test_a_sweep_is_not_spread_over_ranks(tmp_path):
    grid = ["--grid", "learning_rate=0.1,0.01"]
    outcome = call("sweep", *QUADRATIC, *grid, "--engine", "distributed", "--out", tmp_path)
    assert outcome.code == BAD_INPUT
    assert "engine = 'distributed'" in outcome.err


def test_other_engines_refuse_torchrun(tmp_path, monkeypatch):
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    outcome = call("run", *QUADRATIC, "--out", tmp_path)
    assert outcome.code == BAD_INPUT
    assert "use --engine distributed" in outcome.err
