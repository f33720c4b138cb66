"""Omniglot is found in all usual forms, refused if it is incomplete, and cached; archives can't do harm."""

import io
import json
import os
import random
import zipfile
import zlib
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from fedcso.core.errors import FedcsoError
from fedcso.datasets import CHARACTERS
from fedcso.datasets.characters import Characters, check
from fedcso.datasets.fetch import cache
from fedcso.datasets.fetch.places import DataMissing
from tests.command_line import BAD_INPUT, FINE, call

omniglot = import_module("fedcso.datasets.omniglot")  # the package has a function of this name

REAL = Path(__file__).parents[3] / "shared" / "data"
ALPHABETS = {"images_background": ("Latin", "Hebrew"), "images_evaluation": ("Angelic", "ULOG")}
TINY = 2
"""Characters of each alphabet in the small copies made here."""


def png(side=105, mark=0):
    """Return a white picture with a black bar; the mark makes it differ from others."""
    picture = Image.new("1", (side, side), 1)
    picture.paste(0, (10, 20, 10 + 15, 80))
    picture.putpixel((mark % 100, 100), 0)
    return encoded(picture)


def encoded(picture, kind="PNG"):
    buffer = io.BytesIO()
    picture.save(buffer, kind)
    return buffer.getvalue()


def pictures(part):
    """Return the names and contents of a small half of Omniglot."""
    characters = [f"{alphabet}/character{n:02}" for alphabet in ALPHABETS[part] for n in range(1, TINY + 1)]
    return {
        f"{part}/{character}/{number:04}_{drawing:02}.png": png(mark=20 * number + drawing)
        for number, character in enumerate(characters)
        for drawing in range(1, 21)
    }


def put_zip(folder, part, files):
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(folder / f"{part}.zip", "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)


def put_folder(folder, part, files):
    (folder / part).mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


FORMS = {"zip": put_zip, "folder": put_folder}


@pytest.fixture(autouse=True)
def _no_other_places(tmp_path, monkeypatch):
    monkeypatch.setenv("FEDCSO_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("FEDCSO_DATA", raising=False)


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    """A root with a small copy that counts as the published one."""
    for part in ALPHABETS:
        put_zip(tmp_path / "root" / "omniglot-py", part, pictures(part))
    monkeypatch.setattr(omniglot, "PARTS", dict.fromkeys(ALPHABETS, 2 * TINY))
    monkeypatch.setattr(omniglot, "TRAIN_FROM_EVALUATION", 3)
    monkeypatch.setattr(omniglot, "DIGEST", omniglot.read(omniglot.find(tmp_path / "root"))[1])
    return tmp_path / "root"


def rebuild(root, part, change):
    """Change the files of a half."""
    files = pictures(part)
    change(files)
    put_zip(root / "omniglot-py", part, files)


# --------------------------------------------------------------------------------- finding


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("layout", ["", "omniglot-py", "omniglot", "omniglot/python"])
def test_all_layouts_give_the_same(tiny, tmp_path, form, layout):
    for part in ALPHABETS:
        FORMS[form](tmp_path / "other" / layout, part, pictures(part))
    found = omniglot.omniglot(tmp_path / "other")
    assert [len(images) for images in found] == [5, 2, 1]
    assert omniglot.read(omniglot.find(tmp_path / "other"))[1] == omniglot.DIGEST


def test_a_zip_and_a_folder_may_be_mixed(tiny, tmp_path):
    put_zip(tmp_path / "mixed", "images_background", pictures("images_background"))
    put_folder(tmp_path / "mixed", "images_evaluation", pictures("images_evaluation"))
    assert len(omniglot.omniglot(tmp_path / "mixed").train) == 5


def test_folders_named_in_the_environment_are_searched_in_order(tiny, tmp_path, monkeypatch):
    monkeypatch.setenv("FEDCSO_DATA", os.pathsep.join([str(tmp_path / "nothing"), "", str(tiny)]))
    assert omniglot.find() == [tiny / "omniglot-py" / f"{part}.zip" for part in ALPHABETS]


def test_the_cache_folder_is_searched_last(tiny, tmp_path):
    (tmp_path / "cache").mkdir()
    (tiny / "omniglot-py").rename(tmp_path / "cache" / "omniglot-py")
    assert omniglot.find()[0].parent == tmp_path / "cache" / "omniglot-py"


def test_one_half_is_not_enough(tiny):
    (tiny / "omniglot-py" / "images_evaluation.zip").unlink()
    with pytest.raises(DataMissing):
        omniglot.omniglot(tiny)


def test_when_it_is_missing_the_user_is_told_which_files_to_put_where(tmp_path):
    with pytest.raises(DataMissing) as caught:
        omniglot.omniglot()
    for needed in ("images_background.zip", "images_evaluation.zip", str(tmp_path / "cache" / "omniglot-py")):
        assert needed in str(caught.value)
    assert "FEDCSO_DATA" in str(caught.value)
    assert "fedcso data get omniglot" in str(caught.value)


# --------------------------------------------------------------------------------- reading


def test_pictures_are_shrunk_by_area_and_ink_is_255(tiny):
    images = omniglot.omniglot(tiny).train
    assert images.dtype == torch.uint8
    drawing = images[0, 0].float() / 255
    assert drawing[8:20, 4:6].min() == 1
    assert drawing[:5, :].max() == 0
    assert drawing.mean().item() == pytest.approx(15 * 60 / 105**2, rel=0.1)


def test_pictures_saved_in_grey_or_colour_are_the_same_pictures(tiny):
    def recode(files):
        for name, mode in zip(files, ["L", "RGB", "P"], strict=False):
            files[name] = encoded(Image.open(io.BytesIO(files[name])).convert(mode))

    rebuild(tiny, "images_background", recode)
    omniglot.omniglot(tiny)


def test_other_members_of_an_archive_do_not_matter(tiny):
    def add(files):
        files["../../outside.png"] = png()
        files["/images_background/Latin/character01/0000_01.png"] = b"absolute"
        files["images_background/../Latin/character01/0000_01.png"] = b"upwards"
        files["__MACOSX/images_background/Latin/character01/._0000_01.png"] = b"\x00"
        files["images_background/Latin/character01/Thumbs.db"] = b"\x00" * 2_000_000

    before = {path for path in tiny.parent.rglob("*") if path.suffix != ".npz"}
    rebuild(tiny, "images_background", add)
    omniglot.omniglot(tiny)
    after = {path for path in tiny.parent.rglob("*") if path.suffix != ".npz"}
    assert after - before == {tiny.parent / "cache"}


FIRST = "images_background/Hebrew/character01/0002_01.png"


def huge_png():
    """Return a few bytes that claim to be 400 million pixels."""
    data = bytearray(png())
    data[16:24] = (20_000).to_bytes(4, "big") * 2
    data[29:33] = zlib.crc32(data[12:29]).to_bytes(4, "big")
    return bytes(data)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (png(side=104), rf"{FIRST} is 104×104 pixels instead of 105×105"),
        (b"", rf"{FIRST} is not a PNG"),
        (b"no picture", rf"{FIRST} is not a PNG"),
        (png()[:60], rf"{FIRST} is not a PNG"),
        (encoded(Image.new("L", (105, 105)), "BMP"), rf"{FIRST} is not a PNG"),
        (huge_png(), rf"{FIRST} is not a PNG"),
        (png(mark=99), "not the published ones"),
        (b"\x00" * 1_000_001, rf"{FIRST} is larger than 1000000 bytes"),
    ],
    ids=["small", "empty", "text", "cut", "bitmap", "huge", "other", "long"],
)
def test_a_wrong_picture_is_named(tiny, content, message):
    rebuild(tiny, "images_background", lambda files: files.update({FIRST: content}))
    with pytest.raises(FedcsoError, match=message):
        omniglot.omniglot(tiny)
    assert not (tiny.parent / "cache").exists()  # wrong data are not cached


def test_a_decompression_bomb_is_refused_before_it_is_decompressed(tiny, monkeypatch):
    files = pictures("images_background") | {FIRST: b"\x00" * 100_000_000}
    with zipfile.ZipFile(tiny / "omniglot-py" / "images_background.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    assert (tiny / "omniglot-py" / "images_background.zip").stat().st_size < 1_000_000
    amounts = []
    read = zipfile.ZipExtFile.read

    def counted(self, n=-1):
        data = read(self, n)
        amounts.append(len(data))
        return data

    monkeypatch.setattr(zipfile.ZipExtFile, "read", counted)
    with pytest.raises(FedcsoError, match="larger than"):
        omniglot.omniglot(tiny)
    assert 0 < max(amounts) <= omniglot.MOST_BYTES + 1


def test_an_archive_with_too_many_members_is_refused(tiny, monkeypatch):
    monkeypatch.setattr(omniglot, "MOST_MEMBERS", 50)
    with pytest.raises(FedcsoError, match="has 80 members, over the limit of 50"):
        omniglot.omniglot(tiny)


@pytest.mark.parametrize(
    "damage",
    [lambda data: b"", lambda data: data[: len(data) // 2], lambda data: b"PK" * 100],
    ids=["empty", "cut", "other"],
)
def test_an_archive_that_can_not_be_read_is_named(tiny, damage):
    file = tiny / "omniglot-py" / "images_evaluation.zip"
    file.write_bytes(damage(file.read_bytes()))
    with pytest.raises(FedcsoError, match=r"images_evaluation\.zip can't be read"):
        omniglot.omniglot(tiny)


def test_a_changed_byte_in_an_archive_is_noticed(tiny):
    file = tiny / "omniglot-py" / "images_evaluation.zip"
    data = bytearray(file.read_bytes())
    data[data.index(b"IDAT") + 10] ^= 1
    file.write_bytes(data)
    with pytest.raises(FedcsoError, match="Bad CRC-32"):
        omniglot.omniglot(tiny)


def test_a_missing_drawing_is_named(tiny):
    rebuild(tiny, "images_background", lambda files: files.pop(FIRST))
    with pytest.raises(FedcsoError, match="images_background/Hebrew/character01 has 19 drawings instead of 20"):
        omniglot.omniglot(tiny)


def test_a_missing_character_is_counted(tiny):
    def drop(files):
        for name in [name for name in files if "ULOG/character02" in name]:
            del files[name]

    rebuild(tiny, "images_evaluation", drop)
    with pytest.raises(FedcsoError, match="images_evaluation has 3 characters instead of 4"):
        omniglot.omniglot(tiny)


def test_an_empty_folder_is_not_a_data_set(tmp_path):
    for part in ALPHABETS:
        (tmp_path / "empty" / part).mkdir(parents=True)
    with pytest.raises(FedcsoError, match="images_background has 0 characters instead of 964"):
        omniglot.omniglot(tmp_path / "empty")


# --------------------------------------------------------------------------------- the cache


def same(one, other):
    return all(torch.equal(*pair) for pair in zip(one, other, strict=True))


def test_the_second_time_no_picture_is_read(tiny, monkeypatch):
    first = omniglot.omniglot(tiny)
    monkeypatch.setattr(omniglot, "read", pytest.fail)
    assert same(first, omniglot.omniglot(tiny))


def test_a_cache_for_other_content_is_not_used(tiny, monkeypatch):
    omniglot.omniglot(tiny)
    monkeypatch.setattr(omniglot, "DIGEST", "0" * 64)
    with pytest.raises(FedcsoError, match="not the published ones"):
        omniglot.omniglot(tiny)


@pytest.mark.parametrize("cut", [0, 1, 100, -1])
def test_a_cut_cache_is_made_again(tiny, caplog, cut):
    first = omniglot.omniglot(tiny)
    (file,) = (tiny.parent / "cache").glob("*.npz")
    whole = file.read_bytes()
    file.write_bytes(whole[:cut])
    assert same(first, omniglot.omniglot(tiny))
    assert "damaged" in caplog.text
    assert len(file.read_bytes()) == len(whole)


def test_preparing_is_announced_only_the_first_time(tiny, monkeypatch):
    monkeypatch.setenv("FEDCSO_DATA", str(tiny))
    for told in (True, False):
        outcome = call("data", "check", "omniglot")
        assert outcome.code == FINE
        assert ("preparing omniglot for the first time" in outcome.err) is told


def test_no_changed_byte_in_a_cache_changes_a_pixel(tmp_path, caplog):
    rng = np.random.default_rng(0)
    made = Characters(*(torch.from_numpy(rng.integers(0, 9, (2, 3, 28, 28), dtype=np.uint8)) for _ in range(3)))
    cache.cached_characters("small", "0" * 64, lambda: made)
    (file,) = (tmp_path / "cache").glob("*.npz")
    whole = file.read_bytes()
    choose = random.Random(0)
    for _ in range(300):
        data = bytearray(whole)
        data[choose.randrange(len(data))] ^= 1 << choose.randrange(8)
        file.write_bytes(data)
        assert same(made, cache.cached_characters("small", "0" * 64, lambda: made))
    assert "damaged" in caplog.text


@pytest.mark.parametrize(
    "arrays",
    [
        {"train": np.zeros((1, 1, 28, 28), np.uint8)},
        {split: np.zeros((1, 1, 28, 27), np.uint8) for split in Characters._fields},
        {split: np.zeros((1, 1, 28, 28), np.float32) for split in Characters._fields},
        {split: np.array([{}]) for split in Characters._fields},
    ],
)
def test_a_cache_that_holds_something_else_is_made_again(tiny, caplog, arrays):
    first = omniglot.omniglot(tiny)
    (file,) = (tiny.parent / "cache").glob("*.npz")
    np.savez(file, **arrays)
    assert same(first, omniglot.omniglot(tiny))
    assert "damaged" in caplog.text


def test_a_cache_that_can_not_be_written_is_only_a_warning(tiny, tmp_path, monkeypatch, caplog):
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("FEDCSO_CACHE", str(tmp_path / "file" / "cache"))
    assert len(omniglot.omniglot(tiny).train) == 5
    assert "could not write omniglot to the cache" in caplog.text


# --------------------------------------------------------------------------------- downloading


def served_from(source):
    """Return a replacement of `pooch.retrieve` that copies the file of that name."""

    def retrieve(url, known_hash, fname, path):
        if not (source / Path(url).name).exists():
            raise ConnectionError("no network")
        Path(path).mkdir(parents=True, exist_ok=True)
        (Path(path) / fname).write_bytes((source / Path(url).name).read_bytes())

    return retrieve


def test_a_download_is_found_afterwards(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(omniglot.pooch, "retrieve", served_from(tiny / "omniglot-py"))
    omniglot.fetch()
    assert len(omniglot.omniglot().train) == 5
    assert omniglot.find()[0].parent == tmp_path / "cache" / "omniglot-py"


def test_without_a_network_the_user_is_told_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setattr(omniglot.pooch, "retrieve", served_from(tmp_path / "nowhere"))
    with pytest.raises(FedcsoError) as caught:
        omniglot.fetch(tmp_path / "mine")
    for needed in ("no network", "images_background.zip", "images_evaluation.zip", str(tmp_path / "mine/omniglot-py")):
        assert needed in str(caught.value)


def test_a_download_with_other_content_does_not_stay(tiny, tmp_path, monkeypatch):
    rebuild(tiny, "images_background", lambda files: files.update({FIRST: png(mark=99)}))
    monkeypatch.setattr(omniglot.pooch, "retrieve", served_from(tiny / "omniglot-py"))
    with pytest.raises(FedcsoError, match="not the published ones"):
        omniglot.fetch()
    assert not list((tmp_path / "cache").rglob("*.zip"))


def test_a_failed_download_never_deletes_the_users_own_file(tiny, tmp_path, monkeypatch):
    own = tmp_path / "mine" / "omniglot-py" / "images_background.zip"
    own.parent.mkdir(parents=True)
    own.write_text("mine")
    monkeypatch.setattr(omniglot.pooch, "retrieve", served_from(tiny / "omniglot-py"))
    with pytest.raises(FedcsoError, match="can't be read"):
        omniglot.fetch(tmp_path / "mine")
    assert own.read_text() == "mine"
    assert not own.with_name("images_evaluation.zip").exists()


def test_the_command_gets_what_is_missing(tiny, monkeypatch):
    monkeypatch.setattr(omniglot.pooch, "retrieve", served_from(tiny / "omniglot-py"))
    missing = call("data", "check", "omniglot")
    assert missing.code == BAD_INPUT
    assert "was not found" in missing.err
    for action in ("get", "check"):
        outcome = call("data", action, "omniglot")
        assert outcome.code == FINE, outcome.err
        told = "omniglot: 8 classes (5 train, 2 validation, 1 test) with 20 drawings of 28×28 each"
        assert outcome.out.splitlines()[-1] == told


# --------------------------------------------------------------------------------- the real pictures


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    if not (REAL / "omniglot-py").is_dir():
        pytest.skip(f"Omniglot is not in {REAL}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FEDCSO_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("FEDCSO_DATA", str(REAL))
        return CHARACTERS["omniglot"]()


def test_the_published_pictures_are_accepted(real):
    assert [len(images) for images in real] == [1028, 172, 423]
    for images in real:
        check(images, 20)
        assert images.dtype == torch.uint8
        assert 0.05 < images.float().mean() / 255 < 0.12  # thin lines of ink
        assert images.amax((-1, -2)).min() > 60  # each drawing has ink


def test_the_split_is_the_usual_one():
    if not (REAL / "omniglot-splits").is_dir():
        pytest.skip(f"the published split is not in {REAL}")
    published = []
    for name in ("train", "val", "test"):
        halves = json.loads((REAL / "omniglot-splits" / f"{name}.json").read_text())
        published.append(
            [
                f"images_{half}/{alphabet}/{character}"
                for half, alphabets in halves.items()
                for alphabet, characters in alphabets.items()
                for character in characters
            ]
        )
    shuffled = [name for names in published for name in names]
    random.Random(0).shuffle(shuffled)
    assert list(omniglot.split(shuffled)) == published
