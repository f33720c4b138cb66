"""Reading compressed files and archives stops at a limit, and nothing is written to disk."""

import gzip
import io
import lzma
import tarfile

import pytest

from fedcso.core.errors import FedcsoError
from fedcso.datasets.fetch import archives


def packed(file, members, mode="w:gz"):
    """Write an archive of members, each (name or TarInfo, content)."""
    with tarfile.open(file, mode) as archive:
        for name, content in members:
            info = name if isinstance(name, tarfile.TarInfo) else tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return file


FORMS = {"file": bytes, "file.gz": gzip.compress, "file.xz": lzma.compress}


@pytest.mark.parametrize("name", FORMS)
def test_files_are_read_as_their_names_say(tmp_path, name):
    (tmp_path / name).write_bytes(FORMS[name](b"content"))
    assert archives.read_file(tmp_path / name, 7) == b"content"


@pytest.mark.parametrize("name", FORMS)
def test_one_byte_too_many_is_refused(tmp_path, name):
    (tmp_path / name).write_bytes(FORMS[name](b"content"))
    with pytest.raises(FedcsoError, match="larger than 6 bytes"):
        archives.read_file(tmp_path / name, 6)


@pytest.mark.parametrize("name", ["file.gz", "file.xz"])
def test_a_decompression_bomb_is_refused_before_it_is_decompressed(tmp_path, monkeypatch, name):
    (tmp_path / name).write_bytes(FORMS[name](bytes(20_000_000)))
    assert (tmp_path / name).stat().st_size < 100_000
    amounts = []
    opened = archives._open

    def counted(file):
        stream = opened(file)
        read = stream.read

        def counting(size=-1):
            amounts.append(size)
            return read(size)

        stream.read = counting
        return stream

    monkeypatch.setattr(archives, "_open", counted)
    with pytest.raises(FedcsoError, match="larger than 1000 bytes"):
        archives.read_file(tmp_path / name, 1000)
    assert amounts == [1001]


@pytest.mark.parametrize("name", ["file.gz", "file.xz"])
@pytest.mark.parametrize("damage", [lambda data: b"", lambda data: data[:-5], lambda data: b"no such thing"])
def test_a_damaged_file_is_named(tmp_path, name, damage):
    data = damage(FORMS[name](bytes(range(256))))
    (tmp_path / name).write_bytes(data)
    if name == "file.gz" and not data:  # an empty file is a valid .gz without members
        assert archives.read_file(tmp_path / name, 256) == b""
        return
    with pytest.raises(FedcsoError, match=rf"{name} can't be read"):
        archives.read_file(tmp_path / name, 256)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(FedcsoError, match="nowhere can't be read"):
        archives.read_file(tmp_path / "nowhere", 1)


def test_wanted_members_are_read_by_name(tmp_path):
    file = packed(tmp_path / "a.tar.gz", [("in/one", b"1"), ("./in/two", b"22"), ("one", b"other"), ("in/three", b"")])
    assert archives.read_members(file, ["in/one", "in/two", "in/four"], 100_000) == {"in/one": b"1", "in/two": b"22"}
    assert list(tmp_path.iterdir()) == [file]


def test_names_that_point_elsewhere_are_ignored(tmp_path):
    secret = tmp_path / "secret"
    secret.write_bytes(b"secret")
    link, hard, folder = (tarfile.TarInfo("wanted") for _ in range(3))
    link.type, link.linkname = tarfile.SYMTYPE, str(secret)
    hard.type, hard.linkname = tarfile.LNKTYPE, "../secret"
    folder.type = tarfile.DIRTYPE
    evil = [("../wanted", b"up"), ("/wanted", b"root"), (link, b""), (hard, b""), (folder, b"")]
    file = packed(tmp_path / "a.tar.gz", evil)
    assert archives.read_members(file, ["wanted"], 100_000) == {}
    assert secret.read_bytes() == b"secret"
    assert not (tmp_path.parent / "wanted").exists()


@pytest.mark.parametrize("name", ["wanted", "other"])
def test_an_archive_that_holds_too_much_is_refused(tmp_path, name):
    file = packed(tmp_path / "a.tar.gz", [(name, bytes(10_000_000))])
    assert file.stat().st_size < 100_000
    with pytest.raises(FedcsoError, match="larger than 1000000 bytes"):
        archives.read_members(file, ["wanted"], 1_000_000)


def test_a_member_that_claims_to_be_huge_allocates_nothing(tmp_path):
    info = tarfile.TarInfo("wanted")
    info.size = 2**40
    (tmp_path / "a.tar.gz").write_bytes(gzip.compress(info.tobuf() + bytes(2048)))
    with pytest.raises(FedcsoError, match="can't be read"):
        archives.read_members(tmp_path / "a.tar.gz", ["wanted"], 1_000_000)


@pytest.mark.parametrize("damage", [lambda data: b"", lambda data: data[:60], lambda data: gzip.compress(b"x" * 600)])
def test_a_damaged_archive_is_named(tmp_path, damage):
    file = packed(tmp_path / "a.tar.gz", [("wanted", bytes(range(256)) * 9)])
    file.write_bytes(damage(file.read_bytes()))
    with pytest.raises(FedcsoError, match=r"a\.tar\.gz can't be read"):
        archives.read_members(file, ["wanted"], 100_000)
