"""`make test-python` finds the Pythons of the machine, and says what it tried."""

import sys

from tests import pythons


def test_versions_are_those_of_the_classifiers():
    assert pythons.versions() == ["3.11", "3.12", "3.13"]


def test_the_interpreter_is_of_the_version_and_starts(tmp_path, monkeypatch):
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    shim = tmp_path / f"python{version}"
    shim.write_text("#!/bin/sh\nexit 127\n")
    shim.chmod(0o755)
    monkeypatch.setattr(pythons, "candidates", lambda version: [str(shim), sys.executable])
    assert pythons.find_interpreter(version) == sys.executable
    assert pythons.find_interpreter("3.1") is None


def test_a_failure_is_named_and_a_missing_python_is_none(monkeypatch, capsys):
    found = {"3.11": "python3.11", "3.12": "python3.12"}
    codes = {"3.11": {"tour": 0, "tests": 0}, "3.12": {"tour": 1}}
    monkeypatch.setattr(pythons, "find_interpreter", found.get)
    monkeypatch.setattr(pythons, "try_version", lambda version, interpreter, tests: codes[version])
    assert pythons.main([]) == 1
    assert capsys.readouterr().out.split("\n")[1:-1] == [
        "Python 3.11: tour ok, tests ok",
        "Python 3.12: tour FAILED",
        "Python 3.13: not on this machine",
    ]
