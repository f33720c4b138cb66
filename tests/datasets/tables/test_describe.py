"""Descriptions of tables with dates, booleans and identifiers contain no rows; sites agree from them."""

import json

import numpy as np
import pandas as pd
import pytest
import torch

from fedcso.core.errors import FedcsoError
from fedcso.datasets.tables.agree import agree, agreed_sites
from fedcso.datasets.tables.describe import Description, describe_table
from fedcso.datasets.tables.encoders import DatePart, Preparation
from fedcso.datasets.tables.sites import load_sites

SITES = {"berlin": 90, "oslo": 110, "rome": 150}


def frames():
    rng = np.random.default_rng(1)
    made = {}
    for number, (name, rows) in enumerate(SITES.items()):
        made[name] = pd.DataFrame(
            {
                "patient_id": rng.permutation(rows),
                "age": rng.normal(50 + 10 * number, 5, rows).round(1),
                "smokes": rng.random(rows) < 0.4,
                "admitted": pd.to_datetime("2019-01-01") + pd.to_timedelta(rng.integers(0, 900, rows), "D"),
                "y": (rng.random(rows) < 0.3).astype(int),
            }
        )
        made[name].loc[:4, "admitted"] = pd.NaT
    return made


@pytest.fixture
def federation(tmp_path):
    """Return a function that writes the sites' tables, and returns the agreement and each site's prepared rows."""

    def join(tables, **options):
        described = {}
        for place, (name, frame) in enumerate(tables.items()):
            if isinstance(frame, str):
                (tmp_path / f"{name}.csv").write_text(frame)
            else:
                frame.to_csv(tmp_path / f"{name}.csv", index=False)
            own = describe_table(str(tmp_path / f"{name}.csv"), "y", place=place, **options).description
            described[name] = Description.read(name, json.loads(json.dumps(own.as_json())))
        agreement = agree(described)
        sites = {}
        for place, name in enumerate(tables):
            (tmp_path / "agreement.json").write_text(json.dumps(agreement | {"place": place}))
            path = str(tmp_path / f"{name}.csv")
            sites[name] = agreed_sites(path, "y", "", str(tmp_path / "agreement.json"), 0, **options)
        return agreement, sites

    return join


def trained(sites):
    return torch.cat([site.train[0].inputs for site in sites.values()]).double()


def test_the_agreement_on_dates_and_booleans_equals_that_of_pooled_rows(federation):
    agreement, sites = federation(frames())
    preparation = sites["oslo"].preparation
    parts = ("year", "month", "weekday", "days since 2000-01-01")
    assert preparation.names == ["age", "smokes", *(f"admitted {part}" for part in parts), "admitted is missing"]
    inputs = trained(sites)
    assert inputs[:, :-1].mean(0).abs().max() < 1e-5
    assert (inputs[:, :-1].std(0, correction=0) - 1).abs().max() < 1e-5
    assert agreement["notes"][0].startswith("patient_id: left out, because it looks like an identifier")


def test_descriptions_contain_no_dates_or_identifiers(tmp_path):
    for name, frame in frames().items():
        frame.assign(patient_id=[f"{name}-{n}" for n in frame["patient_id"]]).to_csv(tmp_path / "t.csv", index=False)
        described = describe_table(str(tmp_path / "t.csv"), "y")
        written = json.dumps(described.description.as_json())
        assert f"{name}-" not in written
        assert "2019-" not in written
        assert "2020-" not in written
        assert any(note.startswith("patient_id: looks like an identifier") for note in described.notes)


def test_sites_may_write_dates_and_booleans_differently(federation):
    plain = frames()
    agreement, expected = federation(plain)
    own = {name: frame.copy() for name, frame in plain.items()}
    own["berlin"]["admitted"] = plain["berlin"]["admitted"].dt.strftime("%d.%m.%Y")
    own["rome"]["admitted"] = plain["rome"]["admitted"].dt.strftime("%m/%d/%Y")
    own["oslo"]["smokes"] = np.where(plain["oslo"]["smokes"], "yes", "no")
    german = own["berlin"].to_csv(index=False, sep=";", decimal=",")
    written, found = federation(own | {"berlin": german})
    assert [e | {"day_first": True} for e in written["preparation"]["encoders"]] == [
        e | {"day_first": True} for e in agreement["preparation"]["encoders"]
    ]
    for name in SITES:
        assert torch.equal(found[name].train[0].inputs, expected[name].train[0].inputs)
        assert torch.equal(found[name].test[0].inputs, expected[name].test[0].inputs)


def test_a_column_of_booleans_at_one_site_and_categories_at_another_holds_categories(federation):
    tables = frames()
    rng = np.random.default_rng(2)
    tables["rome"]["smokes"] = rng.choice(["yes", "no", "unknown"], SITES["rome"])
    for name in ("berlin", "oslo"):
        tables[name]["smokes"] = np.where(tables[name]["smokes"], "yes", "no")
    _, sites = federation(tables)
    names = sites["oslo"].preparation.names
    assert [name for name in names if name.startswith("smokes")] == [
        *("smokes = no", "smokes = unknown", "smokes = yes", "smokes = other", "smokes is missing"),
    ]
    shown = sites["oslo"].train[0].inputs[:, names.index("smokes = yes")]
    assert 0.2 < shown.mean() < 0.6


def test_a_column_that_a_site_lacks_is_missing_there_and_a_column_of_a_single_site_is_left_out(federation):
    tables = frames()
    tables["oslo"] = tables["oslo"].drop(columns=["age", "admitted"]).assign(ward="b")
    agreement, sites = federation(tables)
    names = sites["oslo"].preparation.names
    assert {"age is missing", "admitted is missing"} <= set(names)
    for name, gone in (("oslo", 1.0), ("rome", 0.0)):
        assert (sites[name].train[0].inputs[:, names.index("age is missing")] == gone).all()
    assert (sites["oslo"].train[0].inputs[:, names.index("age")].abs() < 1e-6).all()  # the mean
    assert {
        "age: there is no such column in oslo; its values are missing there",
        "ward: left out, because only oslo has this column",
    } <= set(agreement["notes"])


def test_a_site_may_leave_out_a_column_that_the_others_use(tmp_path, federation):
    agreement, _ = federation(frames())
    (tmp_path / "agreement.json").write_text(json.dumps(agreement))
    sites = agreed_sites(str(tmp_path / "oslo.csv"), "y", "", str(tmp_path / "agreement.json"), 0, drop="age")
    names = sites.preparation.names
    assert (sites.train[0].inputs[:, names.index("age")].abs() < 1e-6).all()


def test_the_user_chooses_columns_at_all_sites(federation):
    _, sites = federation(frames(), drop="admitted,smokes")
    assert sites["rome"].preparation.names == ["age"]
    _, sites = federation(frames(), columns="patient_id")
    assert sites["rome"].preparation.names == ["patient_id"]


def test_dropping_an_unknown_column_is_only_noted(tmp_path):
    frames()["oslo"].to_csv(tmp_path / "t.csv", index=False)
    notes = describe_table(str(tmp_path / "t.csv"), "y", drop="wards").notes
    assert "wards: there is no such column here" in notes


def test_a_small_site_does_not_turn_a_column_into_an_identifier(federation):
    tables = {name: frame.assign(blood=np.resize(["A", "B", "AB"], len(frame))) for name, frame in frames().items()}
    tables["oslo"] = tables["oslo"].head(5).assign(blood=list("vwxyz"))
    _, sites = federation(tables)
    assert "blood = AB" in sites["rome"].preparation.names


def test_warnings_of_leakage_stay_at_the_site(tmp_path):
    frame = frames()["rome"]
    frame.assign(outcome=np.where(frame.y == 1, "died", "lives")).to_csv(tmp_path / "t.csv", index=False)
    described = describe_table(str(tmp_path / "t.csv"), "y")
    assert any(note.startswith("outcome: alone it nearly gives the label") for note in described.notes)
    pd.concat([frame, frame]).to_csv(tmp_path / "t.csv", index=False)
    assert any("test rows are copies" in note for note in describe_table(str(tmp_path / "t.csv"), "y", drop="x").notes)


def test_few_dates_are_not_described(tmp_path):
    (tmp_path / "t.csv").write_text(
        "d,x,y\n" + "".join(f"{'2020-01-31' if n < 3 else ''},{n},{n % 2}\n" for n in range(20))
    )
    column = describe_table(str(tmp_path / "t.csv"), "y").description.columns["d"]
    assert column.kind == "dates"
    assert all((part.given, part.mean) == (0, 0.0) for part in column.parts.values())


def test_dates_are_encoded_by_an_exported_preparation(federation):
    _, sites = federation(frames())
    preparation = sites["rome"].preparation
    assert sum(isinstance(encoder, DatePart) for encoder in preparation.encoders) == 4
    again = Preparation.from_json(preparation.to_json())
    assert again == preparation
    new = pd.DataFrame({"age": [50, 60], "smokes": ["yes", None], "admitted": ["1/2/2020", ""]})
    assert torch.equal(again.apply(new), preparation.apply(new))


@pytest.mark.parametrize(
    "column", [{"kind": "dates", "given": 1, "missing": 0, "parts": 3}, {"kind": "dates"}, {"x": 1}]
)
def test_a_column_that_can_not_be_read_is_refused(column):
    with pytest.raises(FedcsoError, match="site oslo describes"):
        Description.read("oslo", {"rows": 5, "positives": 1, "columns": {"d": column}})


def test_a_site_takes_part_through_load_sites(tmp_path, federation):
    agreement, sites = federation(frames())
    path = tmp_path / "agreement.json"
    path.write_text(json.dumps(agreement | {"place": 1}))
    again = load_sites(str(tmp_path / "oslo.csv"), "y", agreement=str(path))
    assert torch.equal(again.train[0].inputs, sites["oslo"].train[0].inputs)


@pytest.mark.parametrize(("ones", "told"), [(4, (1.0, 0.0)), (30, (1.3, 0.4583))])
def test_the_mean_of_a_column_with_two_values_does_not_tell_that_one_of_them_is_rare(ones, told, tmp_path):
    values = np.where(np.arange(100) < ones, 2, 1)
    pd.DataFrame({"sex": np.tile(values, 10), "x": np.arange(1000) % 7, "y": np.arange(1000) % 2}).to_csv(
        tmp_path / "t.csv", index=False
    )
    described = describe_table(str(tmp_path / "t.csv"), "y", fewest=100).description
    assert described.rows > 500
    assert (described.columns["sex"].mean, described.columns["sex"].deviation) == pytest.approx(told, abs=0.05)
    if ones < 10:
        assert described.columns["sex"].deviation == 0
