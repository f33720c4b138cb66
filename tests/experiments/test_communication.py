"""Accuracy against bytes: every way is run, counted, drawn and judged."""

from dataclasses import replace

import pytest

from fedcso.experiments import communication
from fedcso.reports.tables import Estimate
from tests.command_line import read_csv, run, without_drawing
from tests.experiments.miniature import shrink

TINY = {
    "problems": {"invariant_logistic": {"clients": 3, "test_points": 20}, "auprc": {"data": "digits", "clients": 3}},
    "rounds": 5,
    "local_steps": 2,
    "seeds": [0, 1],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        without_drawing(patch)
        shrink(patch, "communication", **TINY)
        return run("reproduce", "communication", "--quick", out=tmp_path_factory.mktemp("communication"))


def test_every_way_has_a_line(folder):
    lines = read_csv(folder / "table.csv")
    ways = communication.settings(quick=True).ways
    assert len(lines) == 2 * (1 + 2 * len(ways))
    share = {line["u sent"]: int(line["bytes vs. full"][:-1]) for line in lines if line["method"] == "FCSG-M"}
    assert share["full"] == 100
    assert all(share[way] < 100 for way in ways[1:])
    assert {line["bytes vs. full"] for line in lines if line["method"] == "FCSG"} == {"100%"}


def test_there_are_a_page_and_figures(folder):
    assert "# The cost of sending u" in (folder / "reproduction.md").read_text()
    for problem in TINY["problems"]:
        assert (folder / f"communication-{problem}.png").is_file()


def lines(**values):
    return [
        {
            "problem": "auprc",
            "method": "FCSG-M",
            "u sent": way,
            "bytes vs. full": "50%",
            "average_precision": Estimate(value, 0.01),
        }
        for way, value in values.items()
    ]


@pytest.mark.parametrize(("value", "holds"), [(0.795, True), (0.7, False), (0.9, True)])
def test_a_way_is_fine_if_it_does_not_hurt(value, holds):
    config = replace(communication.settings(quick=True), problems={"auprc": {}}, methods=["FCSG-M"])
    (statement,) = communication.check(config, lines(full=0.8, inferred=value))
    assert statement.holds == holds
    assert ("inferred" in statement.measured) == holds
