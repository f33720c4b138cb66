"""Commands and their functions in Python do the same: every twin is walked, to the same numbers."""

import json

import pandas as pd
import pytest

import fedcso
from tests.command_line import (
    INTERRUPTED,
    QUADRATIC,
    assert_same_contents,
    call,
    contents,
    folders,
    interrupt_after,
    run,
    without_drawing,
)
from tests.fitting.small_sites import search_little, table

SMALL = {"rounds": 3, "local_steps": 2, "seeds": 2, "clients": 3}
METHODS = ["FCSG", "FCSG-M(momentum=0.5)"]


@pytest.fixture
def blank(tmp_path, monkeypatch):
    without_drawing(monkeypatch)
    return tmp_path


def test_run(blank):
    options = ["--algorithm", *METHODS, "--learning-rate", "cosine(0.1)"]
    expected = run("run", *QUADRATIC, *options, out=blank)
    found = fedcso.run("nested_quadratic", METHODS, learning_rate="cosine(0.1)", out=blank, **SMALL)
    assert_same_contents(found.folder, expected)


def test_what_a_problem_recommends_is_used_by_both(blank):
    few = {"rounds": 1, "local_steps": 1, "seeds": 1, "clients": 2}
    options = [f"--{name.replace('_', '-')}={value}" for name, value in few.items()]
    expected = run("run", "auprc", *options, "--data", "breast_cancer", out=blank)
    assert fedcso.run("auprc", data="breast_cancer", out=blank, **few).config == fedcso.load(expected).config


def test_sweep_and_tune(blank):
    options = ["--algorithm", "FCSG", "--grid", "learning_rate=0.1,cosine(0.2)", "--tuning-seeds", "[7, 8]"]
    expected = run("sweep", *QUADRATIC, *options, out=blank)
    grid = {"learning_rate": [0.1, "cosine(0.2)"]}
    found = fedcso.tune("nested_quadratic", "FCSG", grid=grid, tuning_seeds=[7, 8], out=blank, **SMALL)
    assert_same_contents(found.folder, expected)
    assert found.chosen == fedcso.load(expected).chosen


def test_compare_report_and_load(blank):
    folder = run("run", *QUADRATIC, "--algorithm", *METHODS, out=blank)
    outcome = call("compare", folder, "--metric", "loss", "--baseline", METHODS[1])
    compared = fedcso.compare(fedcso.load(folder), metric="loss", baseline=METHODS[1])
    assert outcome.out == str(compared)
    both = fedcso.compare(folder, metric="loss").differences["difference"]
    assert compared.differences["difference"][0] == pytest.approx(-both[0])

    written = contents(folder)
    (folder / "table.md").unlink()
    (folder / "report.html").unlink()
    assert fedcso.report(folder).page == folder / "report.html"
    assert contents(folder) == written


def test_resume(blank, monkeypatch):
    expected = run("run", *QUADRATIC, "--algorithm", *METHODS, out=blank)
    with monkeypatch.context() as patch:
        interrupt_after(patch, rounds=1, unit="FCSG-M")
        folder = run("run", *QUADRATIC, "--algorithm", *METHODS, out=blank, code=INTERRUPTED)
    assert fedcso.load(folder).status == "interrupted"
    assert fedcso.resume(folder).status == "done"
    assert_same_contents(folder, expected)


def test_fit(tmp_path, monkeypatch):
    search_little(monkeypatch)
    patients = tmp_path / "patients.csv"
    table(300).to_csv(patients, index=False)
    options = ["--label", "ill", "--site", "hospital", "--net", "linear", "--out", tmp_path / "command"]
    assert call("fit", patients, *options).code == 0
    expected = fedcso.load(folders(tmp_path / "command")[0])
    found = fedcso.fit(patients, "ill", "hospital", net="linear", out=str(tmp_path / "python"), say=lambda line: None)
    pd.testing.assert_frame_equal(found.comparison, expected.comparison)


def test_tour(blank):
    outcome = call("tour", "--quick", "--seeds", "1", "--out", blank / "command")
    assert outcome.code == 0, outcome.err
    expected = fedcso.load(folders(blank / "command")[0])
    found = fedcso.tour(quick=True, seeds=1, out=blank / "python")
    for part in ("bias", "rare"):
        rows, others = (json.loads((one.folder / f"{part}.json").read_text()) for one in (found, expected))
        assert rows
        assert [row | {"seconds": 0} for row in rows] == [row | {"seconds": 0} for row in others]
    for sentence in found.sentences:
        assert sentence in outcome.out
