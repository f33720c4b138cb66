"""The command line itself: help, versions, lists, exit codes."""

import errno
import runpy
import subprocess
import sys

import pytest

import fedcso
from fedcso.algorithms import ALGORITHMS
from fedcso.cli import main as cli
from fedcso.cli.commands import doctor, list
from fedcso.core.schedules import SCHEDULES
from fedcso.datasets import CHARACTERS, DATASETS, IMAGES
from fedcso.engines import ENGINES
from fedcso.estimators import ESTIMATORS
from fedcso.experiments import EXPERIMENTS
from fedcso.problems import PROBLEMS
from fedcso.runs.folder import RunFolder
from tests.command_line import BROKE_OFF, FINE, INTERRUPTED, QUADRATIC, call, folders

HELP = ["--help", "-h", "help"]


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_every_command_has_help_with_examples(command):
    outcome = call(command, "--help")
    assert outcome.code == FINE
    assert f"usage: fedcso {command}" in outcome.out
    _, _, examples = outcome.out.partition("examples:\n")
    assert examples.strip().startswith(f"fedcso {command}")


@pytest.mark.parametrize("arguments", [[], *([word] for word in HELP)])
def test_the_overview_names_every_command(arguments):
    outcome = call(*arguments)
    assert outcome.code == FINE
    lines = [line.split() for line in outcome.out.splitlines()]
    for command in cli.COMMANDS:
        assert any(words[:1] == [command] and len(words) > 2 for words in lines)


@pytest.mark.parametrize("problem", PROBLEMS)
def test_the_help_of_a_problem_shows_its_options(problem):
    outcome = call("run", problem, "--help")
    assert outcome.code == FINE
    assert "--clients" in outcome.out
    assert f"options of {problem}" in outcome.out


def test_the_version_is_the_packages():
    assert call("--version") == (FINE, f"fedcso {fedcso.__version__}\n", "")


def test_python_m_fedcso_is_the_command_line(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["fedcso", "--version"])
    with pytest.raises(SystemExit, match=str(FINE)):
        runpy.run_module("fedcso", run_name="__main__")
    assert capsys.readouterr().out == f"fedcso {fedcso.__version__}\n"


EVERYTHING = {
    "problems": PROBLEMS,
    "algorithms": ALGORITHMS,
    "datasets": {**DATASETS, **IMAGES, **CHARACTERS},
    "experiments": EXPERIMENTS,
    "engines": {**ENGINES, "flower": None},
    "estimators": ESTIMATORS,
    "schedules": SCHEDULES,
}


@pytest.mark.parametrize("table", EVERYTHING)
def test_a_list_describes_everything_there_is(table):
    outcome = call("list", table)
    assert outcome.code == FINE
    title, *lines = outcome.out.strip().splitlines()
    assert title == f"{table}:"
    described = {line.split()[0]: line.split()[1:] for line in lines if line.startswith("  ")}
    assert described.keys() == EVERYTHING[table].keys()
    assert all(len(words) > 2 for words in described.values())


def test_methods_are_listed_in_groups_with_when_to_use_them():
    lines = call("list", "algorithms").out.splitlines()[1:]
    for group, names in ALGORITHMS.groups().items():
        first = lines.index(f" {group}") + 1
        assert [line.split()[0] for line in lines[first : first + len(names)]] == names
        for name, line in zip(names, lines[first:], strict=False):
            assert ALGORITHMS[name].use_when
            assert line.endswith(f" {ALGORITHMS[name].use_when}")


def test_the_whole_list_has_all_tables():
    outcome = call("list")
    assert outcome.code == FINE
    for table in list.TABLES:
        assert f"{table}:\n" in outcome.out


def test_no_two_things_are_described_alike():
    """Regression: STEM was said to be Acc-FCSG-M, SOX and MOML were the same, and so were all engines."""
    lines = [line.split(maxsplit=1) for line in call("list").out.splitlines() if line.startswith("  ")]
    words = [description for _, description in lines]
    assert [description for description in words if words.count(description) > 1] == []


@pytest.fixture(autouse=True)
def only_what_comes_quickly(monkeypatch):
    monkeypatch.setattr(doctor, "TABLES", (DATASETS,))


def test_the_doctor_names_versions_data_and_extras():
    outcome = call("doctor")
    assert outcome.code == FINE
    found = {line.split()[0] for line in outcome.out.splitlines()}
    assert {"python", "torch", "fedcso", "cores", "device"} <= found
    assert "data digits    found, 1797 examples" in outcome.out


def test_the_doctor_says_how_to_install_what_is_missing(monkeypatch):
    monkeypatch.setattr(doctor, "EXTRAS", {"sweep": ["no_such_package"]})
    assert "missing no_such_package: pip install 'fedcso[sweep]'" in call("doctor").out


@pytest.mark.parametrize("action", ["check", "get"])
def test_a_data_set_is_described(action):
    outcome = call("data", action, "digits")
    assert outcome == (FINE, "digits: 1797 examples of 64, 10 classes\n", "")


# -------------------------------------------------------------------------- what else may happen


def meet(monkeypatch, error):
    def main(arguments):
        raise error

    monkeypatch.setattr(doctor, "main", main)
    return call("doctor")


def test_ctrl_c_outside_of_a_run_ends_with_130(monkeypatch):
    outcome = meet(monkeypatch, KeyboardInterrupt())
    assert outcome == (INTERRUPTED, "", "fedcso: interrupted\n")


def test_a_full_disk_is_told_in_a_line(monkeypatch):
    outcome = meet(monkeypatch, OSError(errno.ENOSPC, "No space left on device", "runs/x"))
    assert outcome.code == BROKE_OFF
    assert outcome.err.count("\n") == 1
    assert "No space left on device" in outcome.err


def without_a_reader(monkeypatch, *arguments):
    """Exit code and standard error of a command whose output no one reads, as of `fedcso … | true`."""
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)  # output is written at the very end, as for most people
    command = [sys.executable, "-m", "fedcso", *map(str, arguments)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process.stdout.close()
    said = process.stderr.read()
    process.stderr.close()
    return process.wait(), said


def test_a_reader_that_has_gone_is_no_error(monkeypatch):
    assert without_a_reader(monkeypatch, "list") == (FINE, "")


def test_a_run_whose_reader_has_gone_is_done_all_the_same(monkeypatch, tmp_path):
    code, said = without_a_reader(monkeypatch, "run", *QUADRATIC, "--algorithm", "FCSG", "--out", tmp_path)
    assert code == FINE, said
    (folder,) = folders(tmp_path)
    assert RunFolder(folder).status == "done"
