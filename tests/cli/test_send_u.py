"""`--send-u`: how u travels, asked for on the command line, in a file, for all methods or for one."""

import pytest
import yaml

from tests.command_line import BAD_INPUT, FINE, QUADRATIC, call, read_csv, run, without_drawing

BYTES = {"full": 1.0, "bfloat16": 5 / 8, "int8": (8 + 1 + 4 / 10) / 16, "inferred": 0.5}
"""Of what is sent up in full, for x in float64 with ten entries."""


@pytest.fixture
def blank(tmp_path, monkeypatch):
    without_drawing(monkeypatch)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def bytes_up(folder):
    return {row["algorithm"]: int(row["bytes_up"]) for row in read_csv(folder / "metrics.csv") if int(row["round"])}


def test_ways_can_be_compared(blank):
    methods = {way: f"FCSG-M(send_u={way})" for way in BYTES}
    sent = bytes_up(run("run", *QUADRATIC, "--dimension", 10, "--algorithm", *methods.values(), out=blank))
    assert {way: sent[method] / sent[methods["full"]] for way, method in methods.items()} == pytest.approx(BYTES)


def test_a_way_for_all_is_for_those_that_share_u(blank):
    methods = ["FCSG", "FCSG-M", "FCSG-M(send_u=full)"]
    folder = run("run", *QUADRATIC, "--algorithm", *methods, "--send-u", "inferred", out=blank)
    sent = bytes_up(folder)
    assert sent["FCSG"] == sent["FCSG-M"] == sent["FCSG-M(send_u=full)"] / 2
    assert yaml.safe_load((folder / "config.yaml").read_text())["send_u"] == "inferred"
    again = run("run", "--config", folder / "config.yaml", "--name", "again", out=blank)
    assert bytes_up(again) == sent


def test_a_sweep_sends_as_it_was_asked_to_and_says_so(blank):
    method = "FCSG-M(send_u=every(2))"
    grid = ["--grid", "learning_rate=0.1,0.01", "--tuning-seeds", 1]
    folder = run("sweep", *QUADRATIC, "--algorithm", method, *grid, out=blank)
    (chosen,) = yaml.safe_load((folder / "chosen.yaml").read_text())["algorithm"]
    assert "send_u=every(2)" in chosen
    full = run("run", *QUADRATIC, "--algorithm", "FCSG-M", out=blank)
    assert sum(bytes_up(folder).values()) < sum(bytes_up(full).values())


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["FCSG", "--send-u", "int8"], "none of FCSG has it"),
        (["FCSG(send_u=int8)"], "FCSG does not share u"),
        (["FCSG-M", "--send-u", "zip"], "bfloat16"),
        (["FCSG-M", "--send-u", "every(0)"], "at least 1"),
    ],
)
def test_mistakes_are_told(options, reason, blank):
    outcome = call("run", *QUADRATIC, "--algorithm", *options)
    assert outcome.code == BAD_INPUT
    assert "send_u = " in outcome.err
    assert reason in outcome.err
    assert not (blank / "runs").exists()


def test_an_app_for_real_sites_takes_it(blank):
    pytest.importorskip("flwr", reason="needs Flower: pip install 'fedcso[flower]'")
    options = ["--problem", "nested_quadratic", "--algorithm", "FCSG-M", "--send-u", "int8", "--sites", 3]
    assert call("flower", "init", "trial", *options).code == FINE
    assert yaml.safe_load((blank / "trial/app/federated/config.yaml").read_text())["send_u"] == "int8"
