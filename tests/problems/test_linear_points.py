"""A user's own table for linear models: sites, labels −1 and 1, and what is told if it can't be used."""

import numpy as np
import pandas as pd
import pytest
import torch

from fedcso.problems import PROBLEMS
from tests.command_line import BAD_INPUT, FINE, call, run, without_drawing

PROBLEM_NAMES = ("kl_dro", "sinkhorn_dro")


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": rng.normal(50, 10, 120),
            "dose": rng.normal(1, 0.2, 120),
            "ill": rng.choice(["yes", "no"], 120, p=[0.4, 0.6]),
            "hospital": np.repeat(["a", "b"], [80, 40]),
        }
    )
    frame.to_csv(tmp_path / "own.csv", index=False)
    return tmp_path / "own.csv"


@pytest.mark.parametrize("name", PROBLEM_NAMES)
def test_every_site_of_a_table_is_a_client(name, table):
    task = PROBLEMS[name](data=str(table), label="ill", site="hospital")
    assert list(task.names) == ["a", "b"]
    assert task.weights == "size"
    assert task.problem.dimension == 2
    for data in (*task.clients, task.test, task.validation):
        assert set(data.target.tolist()) == {-1.0, 1.0}
        assert data.inputs.dtype == torch.float64
    rows = [len(data.target) for data in (*task.clients, task.test, task.validation)]
    assert sum(rows) == 120
    assert rows[0] > rows[1]
    positives = sum(int((data.target > 0).sum()) for data in (*task.clients, task.test, task.validation))
    assert positives == (pd.read_csv(table)["ill"] == "yes").sum()


def test_a_run_on_a_table_keeps_how_it_was_prepared(table, tmp_path, monkeypatch):
    without_drawing(monkeypatch)
    options = ["--data", str(table), "--label", "ill", "--site", "hospital", "--rounds", "2", "--seeds", "1"]
    folder = run("run", "kl_dro", *options, "--algorithm", "FCSG", out=tmp_path / "runs")
    assert list(folder.rglob("preparation.json"))
    assert call("resume", folder).code == FINE


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--data", "none.csv", "--label", "ill"], "none.csv"),
        (["--data", "iris"], "data = 'iris'"),
        (["--label", "sick"], "sick"),
    ],
)
def test_mistakes_are_told(table, options, says):
    own = options if "--data" in options else ["--data", str(table), *options]
    outcome = call("run", "sinkhorn_dro", *own)
    assert outcome.code == BAD_INPUT
    assert says in outcome.err
