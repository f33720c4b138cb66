"""From a finished ranking run to thresholds, calibration and intervals."""

import json

import numpy as np
import pandas as pd
import pytest

from tests.command_line import BAD_INPUT, LOGISTIC, call, run, without_drawing

AUPRC = [
    "auprc",
    "--data",
    "breast_cancer",
    "--clients",
    "3",
    "--learning-rate",
    "0.1",
    "--rounds",
    "4",
    "--seeds",
    "2",
]
TWO = ["--algorithm", "FCSG", "FCSG-M"]


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        without_drawing(patch)
        return run("run", *AUPRC, *TWO, out=tmp_path_factory.mktemp("runs"))


def test_it_writes_intervals_calibration_and_thresholds(finished):
    outcome = call("decide", finished, "--precision", "0.5", "--alerts", "10", "--rows", "100")
    assert outcome.code == 0, outcome.err
    text = (finished / "decisions.md").read_text()
    assert text.strip() in outcome.out
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    assert [line.split("|")[1].strip() for line in lines] == ["site", "---", "all", "0", "1", "2"]
    assert all(part in text for part in ("precision 0.5 on", "recall 0.8 on", "at most 10 alerts in 100 rows on"))
    written = json.loads((finished / "decisions.json").read_text())
    scores = [one["score"] for one in written["thresholds"]]
    probabilities = [one["probability"] for one in written["thresholds"]]
    assert sorted(scores) == [score for _, score in sorted(zip(probabilities, scores, strict=True))]
    for name in ("precision-recall", "reliability"):
        assert (finished / f"decision-{name}.png").read_bytes().startswith(b"\x89PNG")


def test_the_same_seed_gives_the_same_text(finished, monkeypatch):
    without_drawing(monkeypatch)
    assert call("decide", finished).out == call("decide", finished).out


def test_an_unreachable_wish_is_reported(finished, monkeypatch):
    without_drawing(monkeypatch)
    outcome = call("decide", finished, "--alerts", "1", "--rows", "1000000")
    assert outcome.code == 0
    assert "at most 1 alerts in 1e+06 rows can't be reached" in outcome.out


def test_it_uses_the_method_that_validation_data_prefer(finished, monkeypatch):
    without_drawing(monkeypatch)
    outcome = call("decide", finished)
    said = call("report", finished).out
    values = {
        name: float(line.rpartition(", ")[2].rstrip(")"))
        for line in said.splitlines()
        for name in ("FCSG", "FCSG-M")
        if line.startswith(f"model   {name}:")
    }
    assert f"# Deciding with {max(values, key=values.get)}\n" in outcome.out


def test_a_run_that_ranks_nothing_is_refused(tmp_path, monkeypatch):
    without_drawing(monkeypatch)
    folder = run("run", *LOGISTIC, "--algorithm", "FCSG", out=tmp_path)
    outcome = call("decide", folder)
    assert outcome.code == BAD_INPUT
    assert "no ranking model" in outcome.err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--recall", "1.5"], "recall = 1.5"),
        (["--precision", "0"], "precision = 0"),
        (["--alerts", "200"], "alerts = 200"),
    ],
)
def test_an_invalid_wish_is_refused(finished, options, said):
    outcome = call("decide", finished, *options)
    assert outcome.code == BAD_INPUT
    assert said in outcome.err


def test_a_site_with_one_positive_gets_no_interval(tmp_path, monkeypatch):
    without_drawing(monkeypatch)
    """Of five positives one is in the test data, and any model that ranks it first would seem to be perfect."""
    sites = np.repeat(["large", "small"], [200, 40])
    ill = np.concatenate([np.arange(200) < 40, np.arange(40) < 5]).astype(int)
    x = np.random.default_rng(0).normal(size=240) + 9 * ill
    pd.DataFrame({"x": x, "site": sites, "ill": ill}).to_csv(tmp_path / "t.csv", index=False)
    own = ["--data", tmp_path / "t.csv", "--label", "ill", "--site", "site", "--rounds", 4, "--seeds", 2]
    folder = run("run", "auprc", *own, "--algorithm", "FCSG-M", "--learning-rate", 0.1, out=tmp_path / "runs")
    said = call("decide", folder).out
    (row,) = (line for line in said.splitlines() if line.startswith("| small |"))
    assert "| 1 | 1.0000 (1 positive: too few for an interval) | 1.0000 (1 positive: too few for an interval) |" in row
    (row,) = (line for line in said.splitlines() if line.startswith("| large |"))
    assert "1.0000 (8 positives: all resamples give the same value, so there is no interval)" in row
    assert "1.0000 ± 0.0000" not in said
    assert "(1.0000 to 1.0000)" not in said
