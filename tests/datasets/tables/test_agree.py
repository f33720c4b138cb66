"""Sites agree on columns from descriptions without rows, with the same result as from all rows."""

import json

import numpy as np
import pandas as pd
import pytest
import torch

from fedcso.core.errors import FedcsoError
from fedcso.datasets.tables.agree import agree, agreed_sites
from fedcso.datasets.tables.describe import Description, describe_table
from fedcso.datasets.tables.encoders import Preparation

SITES = {"berlin": 60, "oslo": 45, "rome": 80}


@pytest.fixture
def tables(tmp_path):
    rng = np.random.default_rng(0)
    paths = {}
    for number, (name, rows) in enumerate(SITES.items()):
        frame = pd.DataFrame(
            {
                "age": rng.normal(50 + 10 * number, 5 + number, rows).round(1),
                "colour": rng.choice(["red", "green", "blue"], rows),
                "name": [f"{name} patient {n}" for n in range(rows)],
                "y": (rng.random(rows) < 0.3).astype(int),
            }
        )
        frame.loc[:2, "age"] = np.nan
        paths[name] = tmp_path / f"{name}.csv"
        frame.to_csv(paths[name], index=False)
    return paths


def descriptions(tables):
    return {name: describe_table(str(path), "y", place=n)[0] for n, (name, path) in enumerate(tables.items())}


def test_no_value_of_a_row_is_in_a_description(tables):
    for name, path in tables.items():
        written = json.dumps(describe_table(str(path), "y").description.as_json())
        assert "patient" not in written
        ages = pd.read_csv(path)["age"].dropna()
        assert not any(f": {age}," in written or f": {age}}}" in written for age in ages), name


def test_means_deviations_and_the_share_of_positives_are_those_of_all_training_rows(tables, tmp_path):
    described = descriptions(tables)
    agreement = agree(described)
    preparation = Preparation.from_json(json.dumps(agreement["preparation"]))
    path = tmp_path / "agreement.json"
    trained = []
    for place, table in enumerate(tables.values()):
        path.write_text(json.dumps(agreement | {"place": place}))
        sites = agreed_sites(str(table), "y", "", str(path), 0)
        trained.append(sites.train[0])
        assert sites.positive_rate == agreement["positives"] / agreement["rows"]
    everything = torch.cat([examples.inputs for examples in trained])
    labels = torch.cat([examples.labels for examples in trained])
    assert (len(labels), int(labels.sum())) == (agreement["rows"], agreement["positives"])
    age = everything[:, preparation.names.index("age")].double()
    assert abs(float(age.mean())) < 1e-5
    assert float(age.std(correction=0)) == pytest.approx(1.0, abs=1e-5)
    assert "age is missing" in preparation.names
    assert "colour = red" in preparation.names
    assert not any(name.startswith("name") for name in preparation.names)
    assert any(note.startswith("name: left out") for note in agreement["notes"])


def test_the_coordinator_gets_the_shape_without_rows(tables, tmp_path):
    path = tmp_path / "agreement.json"
    path.write_text(json.dumps(agree(descriptions(tables))))
    sites = agreed_sites("sites", "y", "", str(path), 0)
    assert sites.train[0].inputs.shape == (0, len(sites.preparation.names))


def test_few_values_are_not_described(tmp_path):
    path = tmp_path / "small.csv"
    path.write_text("a,b,y\n1,,0\n2,,1\n3,,0\n4,7,1\n5,,0\n6,,1\n")
    described, parts, _ = describe_table(str(path), "y")
    assert parts == {"train": 4, "validation": 1, "test": 1}
    assert (described.columns["a"].given, described.columns["a"].mean) == (0, 0.0)


def test_a_site_may_have_no_positives_but_must_name_the_positive_label(tmp_path):
    path = tmp_path / "site.csv"
    path.write_text("a,y\n" + "".join(f"{n},0\n" for n in range(20)))
    assert describe_table(str(path), "y")[0].positives == 0
    path.write_text("a,y\n" + "".join(f"{n},well\n" for n in range(20)))
    with pytest.raises(FedcsoError, match=r"--positive is missing: column 'y' holds 'well'"):
        describe_table(str(path), "y")
    assert describe_table(str(path), "y", "ill")[0].positives == 0
    with pytest.raises(FedcsoError, match="--label is missing"):
        describe_table(str(path))


def test_columns_of_a_single_site_are_left_out_and_at_least_one_must_be_common(tables):
    described = descriptions(tables)
    named = {site: next(iter(table.columns.values())) for site, table in described.items()}
    alone = {site: Description(10, 3, {f"age in {site}": column}) for site, column in named.items()}
    with pytest.raises(FedcsoError, match=r"no column in common .*age in oslo: left out, because only oslo has"):
        agree(alone)


@pytest.mark.parametrize(
    "written",
    [
        None,
        {},
        {"rows": 1, "positives": 0, "columns": 3},
        {"rows": "many", "positives": 0, "columns": {}},
        {"rows": 1, "positives": float("nan"), "columns": {}},
    ],
)
def test_a_malformed_description_raises_an_error_that_names_the_site(written):
    with pytest.raises(FedcsoError, match="site oslo"):
        Description.read("oslo", written)
