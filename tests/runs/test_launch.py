"""Processes started by the command line itself: they finish, are killed, are interrupted, and go on."""

import math
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fedcso.runs import launch
from tests.command_line import BAD_INPUT, BROKE_OFF, FINE, INTERRUPTED, QUADRATIC, call, folders, read_csv

COMMAND = ["run", "nested_quadratic", "--clients", "5", "--participation", "3", "--seeds", "1", "--local-steps", "2"]
METHOD = ["--algorithm", "SCAFFOLD", "--learning-rate", "0.01"]
LONG = [*COMMAND, *METHOD, "--rounds", "150", "--checkpoint-rounds", "5"]


def start(place: Path, *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "fedcso", *map(str, arguments)],
        cwd=place,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def ranks_of(process: subprocess.Popen[str]) -> dict[int, int]:
    """The processes that a launcher has started, by rank."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    found = {}
    for child in children:
        environment = Path(f"/proc/{child}/environ").read_bytes().decode()
        if rank := re.search(r"(?:^|\0)RANK=(\d+)", environment):
            found[int(rank[1])] = int(child)
    return found


def after_a_checkpoint(place: Path, process: subprocess.Popen[str]) -> Path:
    """The run folder, as soon as there is something in it to go on from."""
    while True:
        assert process.poll() is None, process.communicate()
        for folder in folders(place / "runs"):
            if list((folder / "checkpoints").rglob("*.safetensors")):
                return folder
        time.sleep(0.01)


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


@pytest.mark.parametrize(("victim", "ranks", "afterwards"), [(1, 3, 2), (0, 2, 1)])
def test_after_a_rank_was_killed_the_run_can_be_resumed_with_fewer(tmp_path, simulated, victim, ranks, afterwards):
    process = start(tmp_path, *LONG, "--engine", "distributed", "--ranks", ranks)
    folder = after_a_checkpoint(tmp_path, process)
    os.kill(ranks_of(process)[victim], signal.SIGKILL)
    said, _ = process.communicate(timeout=180)
    assert process.returncode == BROKE_OFF, said
    assert re.search(rf"rank {victim} of {ranks} was killed by SIGKILL.*resume \S*{folder.name}", said), said
    assert "Traceback" not in said
    process = start(tmp_path, "resume", folder, "--ranks", afterwards)
    said, _ = process.communicate(timeout=180)
    assert process.returncode == FINE, said
    assert_same_numbers(folder, simulated)


def test_ctrl_c_stops_all_ranks_after_a_checkpoint(tmp_path, simulated):
    process = start(tmp_path, *LONG, "--engine", "distributed", "--ranks", 2)
    folder = after_a_checkpoint(tmp_path, process)
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=180)
    assert process.returncode == INTERRUPTED, said
    assert "To continue: fedcso resume" in said
    assert "Traceback" not in said
    assert '"interrupted"' in (folder / "status.json").read_text()
    process = start(tmp_path, "resume", folder)
    said, _ = process.communicate(timeout=180)
    assert process.returncode == FINE, said
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
