"""Commands under torchrun: what several processes can't share is refused by all of them, and nobody is left waiting."""

import os

import pytest

from fedcso.cli.main import main
from fedcso.engines import torchrun
from tests.command_line import (
    BAD_INPUT,
    BROKE_OFF,
    FINE,
    INTERRUPTED,
    QUADRATIC,
    interrupt_after,
    read_csv,
    run,
    without_drawing,
)
from tests.over_ranks import play, said

GRID = ["--grid", "learning_rate=0.1,0.01", "--tuning-seeds", "[7]"]


def ends(codes, *arguments):
    """Every rank's command ends with the code of its place."""
    assert main([str(argument) for argument in arguments]) == codes[torchrun.rank()]


def test_a_sweep_is_refused_by_all_ranks(tmp_path):
    command = ["sweep", *QUADRATIC, *GRID, "--out", tmp_path / "runs"]
    assert play(2, ends, [BAD_INPUT, BAD_INPUT], *command, place=tmp_path) == [0, 0], said(tmp_path)
    for rank in range(2):
        assert (tmp_path / f"rank{rank}.txt").read_text() == (
            "fedcso: fedcso sweep runs in one process; start it without torchrun\n"
        )
    assert not (tmp_path / "runs").exists()


def test_a_mistake_is_told_by_the_leader_and_the_others_go(tmp_path):
    mistakes = {
        "engine = 'simulation' can't run under torchrun": ["run", *QUADRATIC, "--out", tmp_path / "runs"],
        "unknown algorithm": ["run", *QUADRATIC, "--algorithm", "FCGS"],
    }
    for told, command in mistakes.items():
        assert play(2, ends, [BAD_INPUT, FINE], *command, place=tmp_path) == [0, 0], said(tmp_path)
        assert told in (tmp_path / "rank0.txt").read_text()
        assert (tmp_path / "rank1.txt").read_text() == ""


def test_a_sweep_is_not_resumed_by_several(tmp_path, monkeypatch):
    without_drawing(monkeypatch)
    with monkeypatch.context() as patch:
        interrupt_after(patch, rounds=1)
        folder = run("sweep", *QUADRATIC, *GRID, out=tmp_path / "runs", code=INTERRUPTED)
    assert play(2, ends, [BAD_INPUT, FINE], "resume", folder, place=tmp_path) == [0, 0], said(tmp_path)
    assert "a sweep runs in one process" in (tmp_path / "rank0.txt").read_text()


OWN = """
import torch
from fedcso import Task
from fedcso.problems import NestedQuadratic

def task():
    return Task(NestedQuadratic(2), list(torch.ones(2, 2, dtype=torch.float64)))
"""


def at_home(place, codes, *arguments):
    """Every rank in a folder of its own, as on several hosts."""
    os.chdir(place / str(torchrun.rank()))
    ends(codes, *arguments)


def test_ranks_with_different_files_do_not_run_together(tmp_path):
    for rank in range(2):
        (tmp_path / str(rank)).mkdir()
        (tmp_path / str(rank) / "own.py").write_text(f"{OWN}# on host {rank}\n")
    command = ["run", "own.py:task", "--engine", "distributed", "--seeds", "1", "--algorithm", "FCSG"]
    assert play(2, at_home, tmp_path, [BROKE_OFF, BAD_INPUT], *command, place=tmp_path) == [0, 0], said(tmp_path)
    assert "own.py on rank 1 differs from that on the first rank" in (tmp_path / "rank1.txt").read_text()


def test_ranks_on_other_hosts_get_the_weights_from_the_first(tmp_path, monkeypatch):
    without_drawing(monkeypatch)
    place = tmp_path / "0"
    source = run("run", *QUADRATIC, "--algorithm", "FCSG", out=place / "source")
    (tmp_path / "1").mkdir()
    init = source.relative_to(place)
    command = ["run", *QUADRATIC, "--algorithm", "FCSG", "--init", init, "--engine", "distributed", "--out", "runs"]
    assert play(2, at_home, tmp_path, [FINE, FINE], *command, place=tmp_path) == [0, 0], said(tmp_path)
    (folder,) = (place / "runs").iterdir()
    alone = run("run", *QUADRATIC, "--algorithm", "FCSG", "--init", source, out=tmp_path / "alone")
    last, expected = (float(read_csv(path / "metrics.csv")[-1]["loss"]) for path in (folder, alone))
    assert last == pytest.approx(expected, rel=1e-12)
