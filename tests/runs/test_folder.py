"""A run folder appears whole or not at all, and remembers settings, environment and status."""

import json
import os
import re
import subprocess

import pytest
import yaml

from fedcso.core import atomic
from fedcso.core.errors import FedcsoError
from fedcso.runs import folder
from fedcso.runs.folder import RunFolder, read_yaml

CONFIG = {"command": "run", "problem": "σ₂", "seeds": [3, 1], "rounds": 5, "momentum": "0.5"}


@pytest.fixture
def made(tmp_path):
    return RunFolder.create(tmp_path / "runs", "trial", CONFIG, {"digest": "abc"})


def test_it_has_a_name_with_date_and_hash(made):
    assert re.fullmatch(r"\d{4}-\d\d-\d\d_\d{6}_trial_[0-9a-f]{6}", made.path.name)


def test_settings_come_back_in_their_order(made):
    assert made.config() == CONFIG
    assert list(made.config()) == list(CONFIG)
    assert "σ₂" in (made.path / "config.yaml").read_text()


def test_the_environment_is_complete(made):
    environment = made.environment()
    assert environment["data"] == {"digest": "abc"}
    assert environment["seeds"] == CONFIG["seeds"]
    assert environment["versions"].keys() >= {"python", "fedcso", "torch", "numpy"}
    assert environment["machine"]["cores"] >= 1


def test_it_starts_running_and_can_be_marked(made):
    assert made.status == "running"
    made.mark("done")
    assert made.status == "done"
    assert RunFolder.open(made.path).status == "done"


def test_others_may_look_into_it(made):
    assert made.path.stat().st_mode & 0o777 == 0o755


def test_nothing_else_is_left_beside_it(made):
    assert [path.name for path in made.path.parent.iterdir()] == [made.path.name]
    assert sorted(os.listdir(made.path)) == ["config.yaml", "env.json", "status.json"]


@pytest.mark.parametrize("number", [1, 2, 3])
def test_if_it_cannot_be_written_there_is_none(tmp_path, monkeypatch, number):
    calls, write = [], atomic.write

    def fails(path, content):
        calls.append(path)
        if len(calls) == number:
            raise OSError("no space left on device")
        write(path, content)

    monkeypatch.setattr(atomic, "write", fails)
    with pytest.raises(OSError, match="no space"):
        RunFolder.create(tmp_path, "trial", CONFIG, {})
    assert os.listdir(tmp_path) == []


def test_two_made_in_the_same_second_are_two(tmp_path):
    first, second = (RunFolder.create(tmp_path, "trial", CONFIG, {}) for _ in range(2))
    assert first.path != second.path


def test_files_are_written_into_subfolders_too(made):
    path = made.write("a/b/file.txt", "text")
    assert path == made.path / "a" / "b" / "file.txt"
    assert path.read_text() == "text"


@pytest.mark.parametrize("missing", ["config.yaml", "status.json"])
def test_what_is_no_run_folder_is_refused(made, missing):
    (made.path / missing).unlink()
    with pytest.raises(FedcsoError, match="is not a run folder"):
        RunFolder.open(made.path)


def test_a_file_is_no_run_folder(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(FedcsoError, match="is not a run folder"):
        RunFolder.open(tmp_path / "file")


def test_only_one_may_work_in_it(made):
    with made.alone(), pytest.raises(FedcsoError, match="another process is using"), made.alone():
        pass
    with made.alone():
        pass  # afterwards it is free again


def test_the_commit_is_that_of_the_checkout_or_none(monkeypatch):
    def git(*_, **__):
        raise subprocess.CalledProcessError(128, "git")

    found = folder.git_commit()
    assert found is None or re.fullmatch(r"[0-9a-f]{40}\+?", found)
    monkeypatch.setattr(subprocess, "run", git)
    assert folder.git_commit() is None


def test_the_files_are_plain_yaml_and_json(made):
    assert yaml.safe_load((made.path / "config.yaml").read_text()) == CONFIG
    assert json.loads((made.path / "status.json").read_text()) == {"status": "running"}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[" * 5000, "it is nested too deeply"),
        ("a: &a [*a]", "it is nested too deeply"),
        ("a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 30)), "100000 values"),
        ("a: 2020-13-40", "can't be read: month must be"),
        ("# " + "x" * 10**6, "is larger than 1000000 bytes"),
        ("\x00", "can't be read"),
        ("- 1", "must contain lines `name: value`"),
    ],
)
def test_settings_that_can_not_be_read_are_refused_in_words(tmp_path, text, told):
    (tmp_path / "config.yaml").write_text(text)
    with pytest.raises(FedcsoError, match=re.escape(told)):
        read_yaml(tmp_path / "config.yaml", "config")


def test_settings_may_refer_to_each_other(tmp_path):
    (tmp_path / "config.yaml").write_text("a: &a [1, 2]\nb: *a\n")
    assert read_yaml(tmp_path / "config.yaml", "config") == {"a": [1, 2], "b": [1, 2]}
