"""`--estimator auto` becomes a name before anything else is made, and the run folder says why."""

import pytest

from fedcso.core.errors import UnknownName
from fedcso.runs.auto_estimator import FILE, settle_estimator
from fedcso.runs.config import RunConfig
from tests.command_line import BAD_INPUT, FINE, call, read_csv, run, without_drawing

QUADRATIC = {"problem": "nested_quadratic", "clients": 3, "noise": 3.0, "inner_batch": 4, "outer_batch": 4}


def settled(**options):
    config = RunConfig.from_flat(QUADRATIC | {"estimator": "auto"} | options)
    return settle_estimator(config, config.task())


def test_a_name_is_left_as_it_is():
    found = settled(estimator="rt_mlmc")
    assert found.config.estimator == "rt_mlmc"
    assert not found.why
    assert not found.files()


def test_auto_becomes_a_name_with_a_reason():
    found = settled()
    assert found.config.estimator == "extrapolated"
    assert found.why.startswith("estimator auto: extrapolated, because the error of a round at x_0 is plain ")
    assert found.files() == {FILE: f"{found.why}\n".encode()}


def test_a_method_that_tracks_keeps_plain_for_all():
    found = settled(algorithm=["FCSG", "Local-SCGD"])
    assert found.config.estimator == "plain"
    assert found.why == "estimator auto: plain, because Local-SCGD tracks the inner value and can't use another one"


def test_the_clients_of_the_first_round_are_looked_at():
    everyone, one = settled(), settled(participation=1)
    assert everyone.why != one.why


def test_an_unknown_name_is_told_what_there_is():
    with pytest.raises(UnknownName, match=r"autp.*did you mean auto"):
        settled(estimator="autp")


OPTIONS = ["nested_quadratic", "--clients", "3", "--noise", "3", "--inner-batch", "4", "--outer-batch", "4"]
SHORT = ["--rounds", "8", "--local-steps", "25", "--seeds", "1", "--algorithm", "FCSG", "--learning-rate", "0.05"]


def test_a_run_is_that_of_the_chosen_estimator(tmp_path, monkeypatch, capsys):
    without_drawing(monkeypatch)
    folder = run("run", *OPTIONS, *SHORT, "--estimator", "auto", out=tmp_path / "auto")
    why = (folder / FILE).read_text()
    assert why.startswith("estimator auto: extrapolated, because")
    assert "estimator: extrapolated\n" in (folder / "config.yaml").read_text()
    named = run("run", *OPTIONS, *SHORT, "--estimator", "extrapolated", out=tmp_path / "named")
    norms = [[row["gradient_norm"] for row in read_csv(one / "metrics.csv")] for one in (folder, named)]
    assert norms[0] == norms[1]
    assert not (named / FILE).exists()
    assert call("resume", folder).code == FINE


def test_a_sweep_chooses_too(tmp_path, monkeypatch):
    without_drawing(monkeypatch)
    grid = ["--grid", "learning_rate=0.05,0.1", "--metric", "loss", "--tuning-seeds", "7,8", "--estimator", "auto"]
    folder = run("sweep", *OPTIONS, *SHORT[:-2], *grid, out=tmp_path)
    assert "estimator: extrapolated\n" in (folder / "config.yaml").read_text()
    assert (folder / FILE).exists()


def test_an_app_for_real_sites_has_the_chosen_name(tmp_path):
    pytest.importorskip("flwr")
    app = tmp_path / "app"
    outcome = call("flower", "init", app, "--problem", *OPTIONS, *SHORT, "--sites", "3", "--estimator", "auto")
    assert outcome.code == FINE, outcome.err
    assert "note    estimator auto: extrapolated, because" in outcome.out
    assert any("extrapolated" in path.read_text() for path in app.rglob("*.yaml"))


def test_a_coordinator_without_data_can_not_choose(tmp_path):
    pytest.importorskip("flwr")
    where = ["--problem", "auprc", "--data", "sites", "--label", "y", "--sites", "a,b", "--estimator", "auto"]
    outcome = call("flower", "init", tmp_path / "app", *where)
    assert outcome.code == BAD_INPUT
    assert "estimator = 'auto' must be the name of one: the coordinator has no data to choose it by" in outcome.err
