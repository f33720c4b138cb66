"""A user's pictures are the same from arrays and from files; errors are reported with their row."""

import json
import sys

import numpy as np
import pandas as pd
import pytest
import torch

from fedcso.core.errors import FedcsoError, InvalidValue
from fedcso.datasets.tables.agree import agree, agreed_sites
from fedcso.datasets.tables.describe import Description, describe_table
from fedcso.datasets.tables.pictures import scaled
from fedcso.datasets.tables.sites import load_sites
from fedcso.datasets.tables.table import load_table
from fedcso.problems.scores import to_network_input

Image = pytest.importorskip("PIL.Image", reason="needs pillow: pip install 'fedcso[images]'")

RNG = np.random.default_rng(0)
N = 60
COLOURED = RNG.integers(0, 256, (N, 3, 20, 18), dtype=np.uint8)
GREY = RNG.integers(0, 256, (N, 1, 20, 18), dtype=np.uint8)
LABELS, SITES = np.arange(N) % 4 == 0, np.repeat(["east", "north", "west"], N // 3)
ROWS = {"ill": LABELS, "hospital": SITES}


def save_npz(path, pictures=COLOURED, **others):
    np.savez(path, X=pictures, **(ROWS | others))
    return path


@pytest.fixture
def files(tmp_path):
    """Return a function that writes a table and its pictures, and returns the path of the table."""

    def write(pictures=COLOURED, name="table.csv", **columns):
        (tmp_path / "scans").mkdir(exist_ok=True)
        names = [f"scans/{number}.png" for number in range(len(pictures))]
        for path, picture in zip(names, pictures, strict=True):
            Image.fromarray(picture[0] if len(picture) == 1 else picture.transpose(1, 2, 0)).save(tmp_path / path)
        pd.DataFrame({"file": names} | ROWS | columns).to_csv(tmp_path / name, index=False)
        return tmp_path / name

    return write


def everything(table):
    """Return all pictures with their labels, sorted."""
    parts = [part for name in ("train", "validation", "test") for part in getattr(table, name)]
    return sorted(
        (picture.numpy().tobytes(), int(label)) for part in parts for picture, label in zip(*part, strict=True)
    )


@pytest.mark.parametrize("pictures", [COLOURED, GREY], ids=["coloured", "grey"])
def test_arrays_and_files_give_the_same_pictures(tmp_path, files, pictures):
    from_array = load_table(save_npz(tmp_path / "t.npz", pictures), "ill", "hospital")
    from_files = load_table(files(pictures), "ill", "hospital")
    for table in (from_array, from_files):
        assert table.sites == ["east", "north", "west"]
        assert (table.columns, table.preparation, table.notes) == ([], None, [])
        assert {part.inputs.dtype for part in table.train} == {torch.uint8}
        assert table.train[0].inputs.shape == (12, *pictures.shape[1:])
        assert everything(table) == sorted((p.tobytes(), int(y)) for p, y in zip(pictures, LABELS, strict=True))
    for part in ("train", "validation", "test"):
        for one, other in zip(getattr(from_array, part), getattr(from_files, part), strict=True):
            assert torch.equal(one.inputs, other.inputs)


@pytest.mark.parametrize("scale", [1.0, 1 / 255])
def test_pixels_from_0_to_1_or_to_255_become_bytes(tmp_path, scale):
    table = load_table(save_npz(tmp_path / "t.npz", COLOURED * scale), "ill", "hospital")
    assert everything(table) == everything(load_table(save_npz(tmp_path / "b.npz"), "ill", "hospital"))


def test_channels_may_be_the_last_axis_with_a_note(tmp_path):
    table = load_table(save_npz(tmp_path / "t.npz", np.moveaxis(COLOURED, 1, 3)), "ill", "hospital")
    assert everything(table) == everything(load_table(save_npz(tmp_path / "b.npz"), "ill", "hospital"))
    assert table.notes == ["t.npz: the last axis of the pictures is read as their channels"]


def test_a_file_for_each_site_gives_the_same(tmp_path):
    (tmp_path / "sites").mkdir()
    for name in set(SITES):
        np.savez(tmp_path / "sites" / f"{name}.npz", X=COLOURED[name == SITES], ill=LABELS[name == SITES])
    table = load_table(tmp_path / "sites", "ill")
    assert everything(table) == everything(load_table(save_npz(tmp_path / "b.npz"), "ill", "hospital"))


def test_jpeg_files_are_read_and_one_colour_picture_makes_all_rgb(files, tmp_path):
    table = files(GREY)
    Image.fromarray(COLOURED[0].transpose(1, 2, 0)).save(tmp_path / "scans" / "0.jpg")
    frame = pd.read_csv(table)
    frame.loc[0, "file"] = "scans/0.jpg"
    frame.to_csv(table, index=False)
    assert load_table(table, "ill", "hospital").train[0].inputs.shape[1:] == (3, 20, 18)


def test_photographs_are_turned_as_their_camera_was_held(files, tmp_path):
    table = files(GREY)
    exif = Image.Exif()
    exif[0x0112] = 6  # the first row is the right side
    lying = Image.fromarray(GREY[0, 0]).transpose(Image.Transpose.ROTATE_90)
    lying.save(tmp_path / "scans" / "0.png", exif=exif)
    assert everything(load_table(table, "ill", "hospital")) == sorted(
        (p.tobytes(), int(y)) for p, y in zip(GREY, LABELS, strict=True)
    )


def test_rows_without_a_label_need_no_picture(files, tmp_path):
    table = files(ill=[None, *LABELS[1:]])
    (tmp_path / "scans" / "0.png").unlink()
    loaded = load_table(table, "ill", "hospital")
    assert len(everything(loaded)) == N - 1
    assert loaded.notes == ["table.csv: rows without a label in column 'ill' are left out: 1"]


def test_columns_beside_pictures_are_left_out_unless_chosen(files):
    path = files(age=RNG.normal(size=N))
    assert load_table(path, "ill", "hospital").notes == [
        "table.csv: columns beside the pictures are left out (age)",
    ]
    for choice in ({"columns": "age"}, {"drop": "file"}):
        assert load_table(path, "ill", "hospital", **choice).columns == ["age"]


def test_copies_of_a_picture_are_reported(tmp_path):
    pictures = COLOURED.copy()
    pictures[30:] = pictures[0]
    notes = load_table(save_npz(tmp_path / "t.npz", pictures), "ill", "hospital").notes
    assert any("test rows are copies" in note for note in notes)
    assert any("copies of rows at another site (east, north, west)" in note for note in notes)


# --------------------------------------------------------------------------------- mistakes


@pytest.mark.parametrize(
    ("pictures", "message"),
    [
        (COLOURED.astype(int) * 300, "pixels of .* lie between 0 and 76500; scale them"),
        (COLOURED - 128.0, "pixels of .* lie between -128 and 127; scale them"),
        (np.full(COLOURED.shape, np.nan), "pixels of .* lie between nan and nan; scale them"),
        (COLOURED[:, :2], r"have the shape 60×2×20×18; it must be \(number, channels, height, width\)"),
    ],
)
def test_arrays_that_can_not_be_pictures_are_refused(tmp_path, pictures, message):
    with pytest.raises(FedcsoError, match=message):
        load_table(save_npz(tmp_path / "t.npz", pictures), "ill", "hospital")


def test_a_missing_picture_is_reported_with_its_row(files, tmp_path):
    path = files()
    (tmp_path / "scans" / "7.png").unlink()
    with pytest.raises(FedcsoError, match=r"'file' names .*scans/7\.png in row 8 of .*table\.csv, which is not there"):
        load_table(path, "ill", "hospital")


def test_an_invalid_picture_file_is_reported(files, tmp_path):
    path = files()
    (tmp_path / "scans" / "7.png").write_bytes(b"no picture")
    with pytest.raises(FedcsoError, match=r"7\.png in row 8 of .*table\.csv can't be read as a picture"):
        load_table(path, "ill", "hospital")


def test_a_truncated_picture_is_reported(files, tmp_path):
    path = files()
    cut = tmp_path / "scans" / "7.png"
    cut.write_bytes(cut.read_bytes()[:-200])
    with pytest.raises(FedcsoError, match=r"7\.png in row 8 of .* can't be read as a picture \(.*\): save it as PNG"):
        load_table(path, "ill", "hospital")


def test_a_file_of_another_kind_with_the_name_of_a_picture_is_reported(files, tmp_path):
    path = files()
    Image.new("RGB", (18, 20)).save(tmp_path / "scans" / "7.png", format="BMP")
    with pytest.raises(FedcsoError, match=r"7\.png in row 8 of .* can't be read as a picture"):
        load_table(path, "ill", "hospital")


@pytest.mark.parametrize("most", [100, 300])
def test_a_huge_picture_is_refused_before_it_is_decoded(files, monkeypatch, most):
    """Pillow warns above its limit and raises above twice the limit; 360 pixels are both here."""
    path = files()
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", most)
    with pytest.raises(FedcsoError, match=r"0\.png in row 1 of .* is too large a picture .*: reduce its size"):
        load_table(path, "ill", "hospital")


def test_grey_pixels_of_16_bits_are_refused_because_they_would_be_cut_off(files, tmp_path):
    path = files(GREY)
    Image.fromarray(np.full((20, 18), 60000, dtype=np.uint16)).save(tmp_path / "scans" / "7.png")
    with pytest.raises(FedcsoError, match=r"7\.png in row 8 of .* has more than 8 bits for a grey pixel: save it"):
        load_table(path, "ill", "hospital")


def test_a_picture_of_another_size_is_reported(files, tmp_path):
    path = files()
    Image.new("RGB", (5, 4)).save(tmp_path / "scans" / "7.png")
    with pytest.raises(
        FedcsoError, match=r"7\.png in row 8 .* has 5×4 pixels, and the first picture has 18×20; resize"
    ):
        load_table(path, "ill", "hospital")


def test_a_row_without_a_picture_is_reported(files):
    with pytest.raises(FedcsoError, match=r"column 'file' has no value in row 3 of .*table\.csv"):
        load_table(files(file=["scans/0.png"] * 2 + [None] + ["scans/0.png"] * 57), "ill", "hospital")


def test_two_columns_of_pictures_are_refused(files):
    path = files(other="scans/0.png")
    with pytest.raises(
        FedcsoError, match=r"columns file, other of .* name pictures; choose one of them with --columns"
    ):
        load_table(path, "ill", "hospital")


def test_without_pillow_the_user_is_told_what_to_install(files, monkeypatch):
    path = files()
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(FedcsoError, match=r"needs pillow: pip install pillow"):
        load_table(path, "ill", "hospital")


@pytest.mark.parametrize(("other", "has"), [(COLOURED[:, :, :10], "pictures of 3×10×18"), (None, "columns")])
def test_files_with_different_kinds_of_inputs_are_refused(tmp_path, other, has):
    (tmp_path / "sites").mkdir()
    np.savez(tmp_path / "sites" / "a.npz", X=COLOURED, ill=LABELS)
    np.savez(tmp_path / "sites" / "b.npz", X=np.arange(N) if other is None else other, ill=LABELS)
    with pytest.raises(FedcsoError, match=rf"a\.npz has pictures of 3×20×18, and .*b\.npz has {has}; all sites"):
        load_table(tmp_path / "sites", "ill")


# --------------------------------------------------------------------------------- training on them


def test_mirrored_and_moved_versions_are_for_pictures(tmp_path, files):
    sites = load_sites(str(save_npz(tmp_path / "t.npz")), "ill", "hospital", mirrored=True, moved=1)
    assert sites.variation.each == 18
    assert sites.variation.of(sites.train[0]).inputs[:].shape == (12 * 18, 3, 20, 18)
    with pytest.raises(InvalidValue, match=r"moved = 1 .* left out for data other than pictures"):
        load_sites(str(files(age=range(N))), "ill", "hospital", drop="file", moved=1)


def test_sites_agree_on_the_shape_of_their_pictures(tmp_path):
    described = {}
    for number, name in enumerate(("east", "north")):
        np.savez(tmp_path / f"{name}.npz", X=COLOURED[name == SITES], ill=LABELS[name == SITES])
        own = describe_table(str(tmp_path / f"{name}.npz"), "ill", place=number)
        assert own.description.as_json() == {"rows": 12, "positives": 3, "columns": {}, "pictures": (3, 20, 18)}
        described[name] = Description.read(name, json.loads(json.dumps(own.description.as_json())))
    agreement = tmp_path / "agreement.json"
    agreement.write_text(json.dumps(agree(described)))
    sites = agreed_sites(str(tmp_path / "north.npz"), "ill", "", str(agreement), 0)
    assert sites.train[0].inputs.shape == (12, 3, 20, 18)
    assert sites.positive_rate == 0.25
    form = agreed_sites("sites", "ill", "", str(agreement), 0).train[0].inputs
    assert (form.shape, form.dtype) == ((0, 3, 20, 18), torch.uint8)
    described["west"] = Description(5, 1, {}, (1, 20, 18))
    with pytest.raises(FedcsoError, match=r"different shapes \(east 3×20×18, north 3×20×18, west 1×20×18\)"):
        agree(described)
    described["west"] = Description(5, 1, {})
    with pytest.raises(FedcsoError, match="west no pictures"):
        agree(described)


def test_pixels_are_scaled_as_networks_are_given_them():
    pixels = np.arange(256, dtype=np.uint8).reshape(1, 1, 16, 16)
    assert torch.equal(torch.from_numpy(scaled(pixels)), to_network_input(torch.from_numpy(pixels)))
