"""A user's table is the same from all formats, is split correctly without leakage, and errors are reported."""

import gzip
import sys

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fedcso.core.errors import FedcsoError, InvalidValue, UnknownName
from fedcso.datasets.examples import Examples
from fedcso.datasets.tables.table import Table, load_table, split_rows

RNG = np.random.default_rng(0)
ROWS = 100
FRAME = pd.DataFrame(
    {
        "age": np.where(RNG.random(ROWS) < 0.1, np.nan, RNG.normal(60, 10, ROWS).round(1)),
        "dose": RNG.integers(0, 5, ROWS),
        "blood": RNG.choice(["A", "B", "AB", None], ROWS),
        "hospital": np.repeat(["east", "north", "south", "west"], ROWS // 4),
        "ill": (RNG.random(ROWS) < 0.3).astype(int),
    }
)
COLUMNS = ["age", "age is missing", "dose", "blood = A", "blood = AB", "blood = B", "blood = other", "blood is missing"]


def write_csv(frame, file):
    frame.to_csv(file, index=False)


def write_parquet(frame, file):
    frame.to_parquet(file, index=False)


def write_npz(frame, file):
    """Return text as a numpy array, in which missing values are empty texts."""
    text = ("blood", "hospital")
    arrays = {name: frame[name].fillna("").to_numpy(str) if name in text else frame[name].to_numpy() for name in frame}
    np.savez(file, **arrays)


WRITERS = {".csv": write_csv, ".csv.gz": write_csv, ".CSV": write_csv, ".parquet": write_parquet, ".npz": write_npz}


@pytest.fixture
def written(tmp_path):
    """Return a function that writes a table and returns its path."""

    def write(frame=FRAME, name="table.csv"):
        file = tmp_path / name
        if isinstance(frame, str | bytes):
            file.write_bytes(frame.encode() if isinstance(frame, str) else frame)
        else:
            WRITERS[name[name.index(".") :]](frame, file)
        return file

    return write


def small(**columns):
    """Return a small valid table, with columns replaced, added or (by None) removed."""
    whole = {"x": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], "site": list("aabbcc"), "y": [0, 1, 0, 1, 0, 0]} | columns
    return pd.DataFrame({name: values for name, values in whole.items() if values is not None})


def load_small(written, positive=None, **columns):
    return load_table(written(small(**columns)), "y", "site", positive)


def same(one: Table, other: Table) -> bool:
    pairs = [
        (a, b)
        for part in ("train", "validation", "test")
        for x, y in zip(getattr(one, part), getattr(other, part), strict=True)
        for a, b in zip(x, y, strict=True)
    ]
    return all(torch.equal(a, b) for a, b in pairs) and (one.sites, one.columns) == (other.sites, other.columns)


# --------------------------------------------------------------------------------- reading


@pytest.mark.parametrize("ending", WRITERS)
def test_all_formats_give_the_same_table(written, ending):
    table = load_table(written(name=f"table{ending}"), "ill", "hospital")
    assert same(table, load_table(written(), "ill", "hospital"))
    assert table.sites == ["east", "north", "south", "west"]
    assert table.columns == COLUMNS
    assert table.notes == []


@pytest.mark.parametrize("ending", WRITERS)
@pytest.mark.parametrize("way", ["folder", "pattern", "list", "strings"])
def test_one_file_for_each_site_gives_the_same_table(written, tmp_path, ending, way):
    (tmp_path / "sites").mkdir()
    files = [
        written(part.drop(columns="hospital"), f"sites/{name}{ending}") for name, part in FRAME.groupby("hospital")
    ]
    (tmp_path / "sites" / "README.md").write_text("not a table")
    path = {
        "folder": tmp_path / "sites",
        "pattern": str(tmp_path / "sites" / f"*{ending}"),
        "list": files[::-1],
        "strings": [str(file) for file in files],
    }[way]
    assert same(load_table(path, "ill"), load_table(written(), "ill", "hospital"))


def test_several_files_may_have_a_site_column(written, tmp_path):
    (tmp_path / "parts").mkdir()
    written(FRAME.iloc[:40], "parts/1.csv")
    written(FRAME.iloc[40:], "parts/2.csv")
    assert same(load_table(tmp_path / "parts", "ill", "hospital"), load_table(written(), "ill", "hospital"))


def test_files_of_the_same_name_may_have_a_site_column(written, tmp_path):
    for folder, part in (("one", FRAME.iloc[:40]), ("two", FRAME.iloc[40:])):
        (tmp_path / folder).mkdir()
        written(part, f"{folder}/table.csv")
    files = [tmp_path / "one" / "table.csv", tmp_path / "two" / "table.csv"]
    assert same(load_table(files, "ill", "hospital"), load_table(written(), "ill", "hospital"))


def test_sites_may_have_other_orders_and_types_of_columns(written, tmp_path):
    (tmp_path / "sites").mkdir()
    written("x,c,e,y\n1,1,,0\n2,1,,1\n3,2,,0\n", "sites/a.csv")
    written("y,e,c,x\n0,1.5,high,\n1,2.5,high,2.5\n0,,low,1\n", "sites/b.csv")
    table = load_table(tmp_path / "sites", "y")
    assert table.sites == ["a", "b"]
    assert {"x", "c = 1", "c = high"} <= set(table.columns)


def test_a_matrix_in_an_npz_file_gives_several_columns(tmp_path):
    matrix = np.arange(24.0).reshape(12, 2) ** 1.5
    np.savez(tmp_path / "t.npz", X=matrix.astype(">f8"), y=np.arange(12) % 3 == 0, site=np.arange(12) % 2)
    table = load_table(tmp_path / "t.npz", "y", "site")
    assert table.columns == ["X0", "X1"]
    assert table.sites == ["0", "1"]


def test_numbered_sites_are_in_the_order_of_numbers(written):
    frame = FRAME.assign(hospital=np.repeat([1, 2, 10, 20], 25))
    assert load_table(written(frame), "ill", "hospital").sites == ["1", "2", "10", "20"]


def test_a_byte_order_mark_and_blanks_after_commas_do_not_matter(written):
    file = written("\ufeffy, site, x\n0, a, 1\n1, a, 2\n0, b, 3\n1, b, 4\n0, b, 5\n")
    table = load_table(file, "y", "site")
    assert (table.sites, table.columns) == (["a", "b"], ["x"])


def test_the_row_numbers_pandas_writes_are_left_out_with_a_note(tmp_path):
    FRAME.to_csv(tmp_path / "t.csv")
    table = load_table(tmp_path / "t.csv", "ill", "hospital")
    assert table.columns == COLUMNS
    assert table.notes == ["a column without a name was left out"]


# --------------------------------------------------------------------------------- splitting


def test_the_sizes_of_the_parts_at_each_site(written):
    table = load_table(written(), "ill", "hospital")
    for number, name in enumerate(table.sites):
        positives = int(FRAME.ill[FRAME.hospital == name].sum())
        for part, share in (("train", 0.6), ("validation", 0.2), ("test", 0.2)):
            examples = getattr(table, part)[number]
            assert isinstance(examples, Examples)
            assert examples.inputs.dtype == torch.float32
            assert examples.labels.dtype == torch.int64
            assert examples.inputs.shape == (25 * share, len(COLUMNS))
            assert abs(int(examples.labels.sum()) - share * positives) < 1


@given(st.lists(st.integers(0, 1), min_size=1, max_size=60), st.integers(0, 5))
def test_the_split_is_complete_stratified_and_favours_training(labels, seed):
    labels = np.array(labels)
    rows = np.flatnonzero(np.arange(len(labels)) % 7 != 3)  # some rows are another site's
    parts = split_rows(rows, labels, (seed,))
    assert sorted(np.concatenate(list(parts.values())).tolist()) == rows.tolist()
    assert all((np.diff(part) > 0).all() for part in parts.values())
    for label in (0, 1):
        number = int((labels[rows] == label).sum())
        for part, share in (("train", 0.6), ("validation", 0.2), ("test", 0.2)):
            assert abs(int((labels[parts[part]] == label).sum()) - share * number) < 1.5
    if labels[rows].any():
        assert labels[parts["train"]].any()
    assert len(parts["train"]) >= 1


def test_the_seed_decides_the_split(written):
    tables = [load_table(written(), "ill", "hospital", seed=seed) for seed in (0, 0, 1)]
    assert same(tables[0], tables[1])
    assert not same(tables[0], tables[2])


def test_only_training_rows_determine_the_preparation(written):
    first = load_table(written(), "ill", "hospital")
    trained = {tuple(row) for part in first.train for row in part.inputs.tolist()}
    frame = FRAME.copy()
    encoded = [tuple(row) for row in first.preparation.apply(frame).tolist()]
    held_out = [row for row in range(ROWS) if encoded[row] not in trained]
    assert len(held_out) > 30
    frame.loc[held_out, "age"] = 1e6
    frame.loc[held_out, "blood"] = "new"
    second = load_table(written(frame), "ill", "hospital")
    assert second.preparation == first.preparation
    assert all(torch.equal(a.inputs, b.inputs) for a, b in zip(first.train, second.train, strict=True))
    assert not all(torch.equal(a.inputs, b.inputs) for a, b in zip(first.test, second.test, strict=True))


def test_training_numbers_have_mean_0_and_deviation_1_over_all_sites(written):
    train = torch.cat([part.inputs for part in load_table(written(), "ill", "hospital").train])
    for name in ("age", "dose"):
        column = train[:, COLUMNS.index(name)].double()
        assert column.mean().item() == pytest.approx(0, abs=1e-6)
        assert column.std(correction=0).item() == pytest.approx(1, abs=1e-6)


def test_the_preparation_encodes_the_same_rows_the_same(written):
    table = load_table(written(), "ill", "hospital")
    encoded = {tuple(row) for row in table.preparation.apply(FRAME).tolist()}
    for part in (*table.train, *table.validation, *table.test):
        assert {tuple(row) for row in part.inputs.tolist()} <= encoded


def test_sites_with_one_row_or_no_positives_are_allowed(written):
    table = load_small(written, site=list("aaaaab"), y=[0, 1, 0, 1, 0, 0])
    assert [len(part.labels) for part in table.train] == [3, 1]
    assert table.test[1].inputs.shape == (0, 1)
    assert table.notes == [
        "b: no positive label",
        "no site has a positive validation row: average precision is undefined there, and the last model of a run is "
        "the chosen one",
    ]


# --------------------------------------------------------------------------------- labels


def labels_of(table):
    """Return the number of rows with each label, over all parts."""
    return torch.cat([part.labels for part in (*table.train, *table.validation, *table.test)]).bincount().tolist()


TRUTHS = [
    (0, 1),
    (0.0, 1.0),
    (False, True),
    ("0", "1"),
    ("FALSE", "TRUE"),
    ("false", "true"),
    ("No", "Yes"),
    ("n", "y"),
]


@pytest.mark.parametrize("truth", TRUTHS)
def test_zeros_ones_and_booleans_are_labels(written, truth):
    table = load_small(written, y=[truth[value] for value in (0, 1, 1, 1, 1, 0)])
    assert labels_of(table) == [2, 4]
    assert not any("taken for" in note for note in table.notes)


@pytest.mark.parametrize("values", [["ok", "ok", "ill", "ok", "ok", "ill"], [1, 1, 2, 1, 1, 2], [1, 1, 0.5, 1, 1, 0.5]])
def test_the_rarer_of_two_other_labels_is_positive_with_a_note(written, values):
    table = load_small(written, y=values)
    assert labels_of(table) == [4, 2]
    note = f"y: {str(values[2])!r} was taken for positive because it is rarer; --positive chooses otherwise"
    assert note in table.notes


@pytest.mark.parametrize(
    ("values", "positive", "number"),
    [
        (["no", "no", "yes", "no", "no", "yes"], "no", 4),
        (["a", "b", "c", "c", "b", "c"], "a", 1),
        (["a", "b", "c", "c", "b", "c"], " a , b", 3),
        (["a,b", "b", "c", "c", "b", "c"], "a,b", 1),
        ([1, 2, 3, 3, 2, 3], 3, 3),
        ([1, 2, 3, 3, 2, 3], "1,2", 3),
        ([1, 2, 3, 3, 2, 3], 2.0, 2),
        ([0, 1, 1, 1, 1, 0], "0", 2),
        ([True, False, True, False, False, False], False, 4),
    ],
)
def test_the_user_may_choose_the_positive_labels(written, values, positive, number):
    table = load_small(written, y=values, positive=positive)
    assert labels_of(table) == [6 - number, number]
    assert not any("taken for" in note for note in table.notes)


@pytest.mark.parametrize("positive", ["d", "a,d", "a,b,c", "", "A"])
def test_unknown_labels_or_all_labels_are_refused_as_positive(written, positive):
    with pytest.raises(InvalidValue, match=r"positive = .* some, not all, of the labels there are: 'c', 'b', 'a'"):
        load_small(written, y=["a", "b", "c", "c", "b", "c"], positive=positive)


def test_more_than_two_labels_are_refused_with_some_of_them(written):
    with pytest.raises(
        FedcsoError, match=r"6 values \('1', '2', '3', '4', '5', …\), more than two; choose .* --positive"
    ):
        load_small(written, y=[1, 2, 3, 4, 5, 6])


def test_two_equally_frequent_labels_are_refused(written):
    with pytest.raises(FedcsoError, match=r"has 2 values \('a', 'b'\), equally frequent; choose .* with --positive"):
        load_small(written, y=list("aaabbb"))


@pytest.mark.parametrize("value", [0, 1, "no"])
def test_a_single_label_is_refused(written, value):
    with pytest.raises(FedcsoError, match=f"column 'y' holds only '{value}'; there must be positive and negative"):
        load_small(written, y=[value] * 6)


# --------------------------------------------------------------------------------- mistakes in the table


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"y": [None] * 6}, r"column 'y' of .*table\.csv has no value in any row"),
        ({"site": ["a", "a", "b", "b", None, "c"]}, r"column 'site' has no value in row 5 of .*table\.csv"),
        ({"x": None}, r"table\.csv has no columns to learn from besides the label and the site"),
        ({"x": [3] * 6}, r"no column is left to learn from \(x: always 3, left out\)"),
        ({"z": [1, 2, 3, 4, 5, np.inf]}, r"column 'z' holds 'inf' in row 6 of .*table\.csv; .* finite .* --drop z"),
        ({"z": [1, -np.inf, 3, 4, 5, 6]}, r"column 'z' holds '-inf' in row 2 of .*table\.csv"),
        ({"z": [1, 2, 3, 1e300, 5, 6]}, r"column 'z' holds '1e\+300' in row 4 of .*table\.csv"),
        ({"z": [f"2020-02-{day}" for day in range(25, 31)]}, r"column 'z' holds '2020-02-30' in row 6 of .* --drop z"),
    ],
    ids=["label", "site", "no column", "constant", "infinite", "minus infinite", "huge", "no date"],
)
def test_errors_in_a_table_are_reported(written, columns, message):
    with pytest.raises(FedcsoError, match=message):
        load_small(written, **columns)


def test_rows_without_a_label_are_left_out_and_counted(written):
    table = load_small(written, y=[0, 1, None, 1, 0, 0])
    assert labels_of(table) == [3, 2]
    assert "table.csv: rows without a label in column 'y' are left out: 1" in table.notes


def test_a_blank_label_is_missing(tmp_path):
    np.savez(tmp_path / "t.npz", x=np.arange(4.0), y=np.array(["a", " ", "b", "b"]), site=np.arange(4) % 2)
    table = load_table(tmp_path / "t.npz", "y", "site")
    assert labels_of(table) == [2, 1]
    assert "t.npz: rows without a label in column 'y' are left out: 1" in table.notes


def test_a_row_without_a_label_is_treated_as_absent(written):
    whole = load_table(written(FRAME.assign(ill=FRAME.ill.where(FRAME.index % 7 != 0))), "ill", "hospital")
    assert same(whole, load_table(written(FRAME[FRAME.index % 7 != 0]), "ill", "hospital"))


def test_one_site_is_allowed_with_a_note(written):
    table = load_small(written, site=["a"] * 6)
    assert table.sites == ["a"]
    assert "all rows are at one site, 'a': this is training in one place, not federated" in table.notes


def test_a_site_without_positive_test_rows_is_named(written):
    frame = FRAME.copy()
    frame.loc[frame.hospital == "east", "ill"] = [1] + [0] * 24
    table = load_table(written(frame), "ill", "hospital")
    assert not table.test[0].labels.any()
    assert table.notes == ["east: no positive test row, so that the site's own average precision is undefined"]


def test_an_identifier_is_left_out_with_a_note(written):
    table = load_small(written, patient=[f"p{number}" for number in range(6)])
    assert table.columns == ["x"]
    note = "patient: left out, because it looks like an identifier; --columns keeps the columns it names"
    assert note in table.notes


def test_an_unknown_column_is_reported_with_the_nearest(written):
    with pytest.raises(UnknownName, match=r"unknown column of table.csv 'il'; did you mean ill\?"):
        load_table(written(), "il", "hospital")
    with pytest.raises(UnknownName, match=r"unknown column of table.csv 'hospitals'; did you mean hospital\?"):
        load_table(written(), "ill", "hospitals")


def test_label_and_site_must_be_different_columns(written):
    with pytest.raises(InvalidValue, match=r"site = 'ill' .* another column than the label"):
        load_table(written(), "ill", "ill")


@pytest.mark.parametrize("seed", [-1, 0.5, True, "a"])
def test_a_seed_is_a_whole_number(written, seed):
    with pytest.raises(InvalidValue, match="seed = "):
        load_table(written(), "ill", "hospital", seed=seed)


# --------------------------------------------------------------------------------- mistakes with files


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty"),
        ("\n\n", "is empty"),
        ("x,site,y\n", "has no rows"),
        ("x,site,x,y\n1,a,2,0\n", "has two columns called 'x'"),
        ("x,site,y\n1,a,0\n1,a,0,5,6\n", r"more fields than the header \(Expected 3 fields in line 3, saw 5\); put"),
        ("x,site,y\n1,a,0,7\n1,a,0,5\n", "can't be read: a row has more fields than the header"),
        ('x,site,y\n1,"a,0\n', "can't be read: a double quote is opened and not closed"),
        (b"x,site,y\n1,\0,0\n", "is not text"),
        (bytes(range(256)), "table.csv"),
    ],
    ids=["empty", "blank", "head", "twice", "long row", "long rows", "quote", "zero", "noise"],
)
@pytest.mark.filterwarnings("ignore")  # it must not take someone who looks at warnings
def test_an_invalid_file_is_reported(written, content, message):
    with pytest.raises(FedcsoError, match=message) as caught:
        load_table(written(content), "y", "site")
    assert "table.csv" in str(caught.value)


@pytest.mark.parametrize("ending", [".parquet", ".npz", ".csv.gz"])
@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 no archive", b"PAR1 no table PAR1"])
def test_a_file_of_another_format_is_reported(written, ending, content):
    with pytest.raises(FedcsoError, match=rf"table\{ending} (can't be read|is empty|is not text)"):
        load_table(written(content, f"table{ending}"), "y", "site")


def test_a_truncated_archive_is_reported(written):
    file = written(name="table.csv.gz")
    file.write_bytes(file.read_bytes()[:-30])
    with pytest.raises(FedcsoError, match="can't be read"):
        load_table(file, "ill", "hospital")
    file.write_bytes(gzip.compress(b""))
    with pytest.raises(FedcsoError, match="is empty"):
        load_table(file, "ill", "hospital")


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"X": np.zeros((4, 2, 2))}, "X is float64 of shape 4×2×2, not numbers or text with 1 or 2 axes"),
        ({"X": np.float64(3)}, "X is float64 of shape , not"),
        ({"X": np.zeros(3)}, "its arrays have different lengths: .*site has 4, X has 3"),
        ({"X": np.array([{}, 1, 2, 3], dtype=object)}, "allow_pickle=False"),
        ({"X": np.zeros(4, dtype="c8")}, "X is complex64"),
        ({"X": np.zeros((4, 1)), "X0": np.zeros(4)}, "X0? gives columns of the same name"),
    ],
)
def test_arrays_that_can_not_be_columns_are_refused(tmp_path, arrays, message):
    np.savez(tmp_path / "t.npz", y=np.arange(4) % 2, site=np.arange(4) // 2, **arrays)
    with pytest.raises(FedcsoError, match=message):
        load_table(tmp_path / "t.npz", "y", "site")


def test_a_single_array_is_not_a_table(tmp_path):
    with (tmp_path / "t.npz").open("wb") as file:
        np.save(file, np.zeros(3))
    with pytest.raises(FedcsoError, match=r"t\.npz can't be read"):
        load_table(tmp_path / "t.npz", "y", "site")


def test_without_pyarrow_the_user_is_told_what_to_install(written, monkeypatch):
    file = written(name="table.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(FedcsoError, match=r"table\.parquet needs pyarrow: pip install pyarrow"):
        load_table(file, "ill", "hospital")


def test_a_column_of_a_single_site_is_left_out_and_one_that_a_site_lacks_is_missing_there(written, tmp_path):
    (tmp_path / "sites").mkdir()
    for name in "abc":
        columns = {"site": None, "lab": None if name == "b" else [1.0, 4.0, 2.0, 8.0, 5.0, 7.0]}
        columns |= {"extra": range(6)} if name == "c" else {}
        written(small(**columns), f"sites/{name}.csv")
    table = load_table(tmp_path / "sites", "y")
    assert table.columns == ["x", "lab", "lab is missing"]
    assert [part.inputs[:, 2].tolist() for part in table.train] == [[0] * 4, [1] * 4, [0] * 4]
    assert {
        "lab: there is no such column in b.csv; its values are missing there",
        "extra: left out, because only c.csv has this column",
    } <= set(table.notes)


@pytest.mark.parametrize("place", range(5))
def test_a_word_among_numbers_is_noted_with_its_row_whichever_part_it_is_in(written, place):
    doses = ["1.5", "2", "2.5", "3", "4"] * 4
    doses[place] = "?"
    table = load_table(written(small(dose=doses, x=range(20), site=["a", "b"] * 10, y=[0, 1] * 10)), "y", "site")
    (note,) = [note for note in table.notes if "taken for categories" in note]
    assert f"because row {place + 1} of table.csv holds '?'" in note


def test_two_files_of_the_same_name_are_refused(written, tmp_path):
    (tmp_path / "sites").mkdir()
    written(small(), "sites/a.csv")
    written(small(), "sites/a.csv.gz")
    with pytest.raises(InvalidValue, match="two are called 'a'"):
        load_table(tmp_path / "sites", "y")


def test_one_file_needs_a_site_column(written, tmp_path):
    for path in (written(), tmp_path):
        with pytest.raises(FedcsoError, match=r"--site is missing: name the column of .*table\.csv that says where"):
            load_table(path, "ill")


@pytest.mark.parametrize("path", ["nowhere.csv", "", "nothing*.csv", []])
def test_missing_files_are_reported(tmp_path, monkeypatch, path):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        InvalidValue, match=r"data = .* must be an existing file, .* end in \.csv, .*\.parquet, .*\.xlsx"
    ):
        load_table(path, "y", "site")


def test_a_missing_file_in_a_list_is_reported(written, tmp_path):
    with pytest.raises(FedcsoError, match=r"there is no file .*nowhere\.csv"):
        load_table([written(), tmp_path / "nowhere.csv"], "ill")


def test_an_unknown_kind_of_file_is_refused(written):
    with pytest.raises(InvalidValue, match=r"table\.xls' .* a file that ends in \.csv"):
        load_table(written("", "table.xls"), "y", "site")


def test_a_file_name_may_contain_characters_of_patterns(written):
    assert load_table(written(name="table[1].csv"), "ill", "hospital").columns == COLUMNS


# --------------------------------------------------------------------------------- tables as people have them


def test_a_german_table_gives_the_same_as_an_english_one(written, tmp_path):
    (tmp_path / "german.csv").write_bytes(
        FRAME.to_csv(index=False, sep=";", decimal=",").replace("east", "öst").encode("cp1252")
    )
    english = load_table(written(FRAME.replace("east", "öst")), "ill", "hospital")
    german = load_table(tmp_path / "german.csv", "ill", "hospital")
    assert same(german, english)
    assert german.notes == ["german.csv: read as Windows-1252 (Latin-1), because it is not UTF-8"]


def test_dates_become_numbers_in_every_format(written, tmp_path):
    days = pd.to_datetime("2019-06-01") + pd.to_timedelta(np.arange(ROWS) * 11, "D")
    frame = FRAME.assign(admitted=days.where(np.arange(ROWS) % 9 != 0))
    (tmp_path / "american").mkdir()
    american = frame.assign(admitted=frame.admitted.dt.strftime("%m/%d/%Y"))
    tables = [
        load_table(written(frame), "ill", "hospital"),
        load_table(written(frame, "table.parquet"), "ill", "hospital"),
        load_table(written(american, "american/table.csv"), "ill", "hospital"),
    ]
    parts = ("year", "month", "weekday", "days since 2000-01-01")
    assert tables[0].columns == [*COLUMNS, *(f"admitted {part}" for part in parts), "admitted is missing"]
    for table in tables:
        assert same(table, tables[0])
        assert table.notes == []
    days_column = torch.cat([part.inputs for part in tables[0].train])[
        :, tables[0].columns.index(f"admitted {parts[-1]}")
    ]
    assert days_column.double().mean().item() == pytest.approx(0, abs=1e-6)
    new = pd.DataFrame({"age": [50], "dose": [1], "blood": ["A"], "admitted": ["03/04/2020"]})
    read = dict(zip(tables[2].columns, tables[2].preparation.apply(new)[0].tolist(), strict=True))
    march = tables[0].preparation.apply(new.assign(admitted=pd.Timestamp("2020-03-04")))[0].tolist()
    assert list(read.values()) == march  # month first, as in training, though the row alone does not tell


def test_booleans_are_one_column_at_all_sites(written, tmp_path):
    (tmp_path / "sites").mkdir()
    smokes = RNG.random(ROWS) < 0.4
    words = {"east": ("no", "yes"), "north": (0, 1), "south": (False, True), "west": ("N", "Y")}
    for name, (no, yes) in words.items():
        own = FRAME.hospital == name
        frame = FRAME[own].drop(columns="hospital").assign(smokes=[yes if s else no for s in smokes[own]])
        written(frame, f"sites/{name}.csv")
    expected = load_table(written(FRAME.assign(smokes=smokes.astype(int))), "ill", "hospital")
    assert same(load_table(tmp_path / "sites", "ill"), expected)
    assert expected.columns == [*COLUMNS, "smokes"]


def test_the_user_chooses_columns(written):
    path = written(FRAME)
    assert load_table(path, "ill", "hospital", drop="age,blood").columns == ["dose"]
    assert load_table(path, "ill", "hospital", columns=["dose"]).columns == ["dose"]
    assert load_table(path, "ill", "hospital", drop=["dose"]).columns == [n for n in COLUMNS if n != "dose"]
    with pytest.raises(UnknownName, match=r"unknown column 'doze'; did you mean dose\?"):
        load_table(path, "ill", "hospital", drop="doze")
    with pytest.raises(
        FedcsoError, match="has no columns to learn from; left out by --drop or --columns: age, dose, blood"
    ):
        load_table(path, "ill", "hospital", drop="age,dose,blood")


def test_an_identifier_that_the_user_names_is_kept(written):
    path = written(FRAME.assign(patient_id=RNG.permutation(ROWS)))
    left_out = load_table(path, "ill", "hospital")
    assert left_out.columns == COLUMNS
    assert left_out.notes == [
        "patient_id: left out, because it looks like an identifier; --columns keeps the columns it names"
    ]
    kept = load_table(path, "ill", "hospital", columns="patient_id,dose")
    assert kept.columns == ["dose", "patient_id"]
    assert kept.notes == []


def test_leaking_columns_and_copies_are_reported(written):
    telling = load_table(written(FRAME.assign(outcome=np.where(FRAME.ill == 1, "died", "lives"))), "ill", "hospital")
    assert [note.split(":")[0] for note in telling.notes] == ["outcome"]
    assert "--drop outcome" in telling.notes[0]
    frame = FRAME.assign(x=RNG.normal(size=ROWS))
    repeated = load_table(written(pd.concat([frame] * 3)), "ill", "hospital")
    assert [note.partition(" rows")[0].split()[-1] for note in repeated.notes] == ["validation", "test"]
    moved = pd.concat([frame, frame[frame.hospital == "east"].head(10).assign(hospital="west")])
    notes = load_table(written(moved), "ill", "hospital").notes
    assert any(note.startswith("20 rows are copies of rows at another site (east, west)") for note in notes)


def test_column_names_may_equal_argument_names_of_pandas(written):
    table = load_table(written(FRAME.rename(columns={"age": "self", "dose": "columns"})), "ill", "hospital")
    assert table.columns[:3] == ["self", "self is missing", "columns"]
