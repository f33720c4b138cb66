"""The examples do what they say."""

import re
import subprocess
import sys
from dataclasses import replace

import pandas as pd
import pytest

from tests.command_line import FINE, call, read_csv, run
from tests.examples import EXAMPLES, example


def test_the_own_method_is_short():
    lines = (EXAMPLES / "own_algorithm.py").read_text().split('"""', 2)[2].splitlines()
    assert sum(bool(line.strip()) for line in lines) <= 30


def test_the_own_method_runs_from_the_command_line(tmp_path):
    spec = f"{EXAMPLES / 'own_algorithm.py'}:HeavyBall(inertia=0.2)"
    folder = run("run", "nested_quadratic", "--algorithm", spec, "--rounds", "2", "--seeds", "1", out=tmp_path)
    assert {row["algorithm"] for row in read_csv(folder / "metrics.csv")} == {spec}
    assert call("resume", folder).code == FINE


def test_the_own_model_learns(capsys):
    example("own_model").main()
    reported = [float(value) for value in re.findall(r"AP ([\d.]+)", capsys.readouterr().out)]
    assert reported[-1] > 0.3 > reported[0]


def test_the_banks_table_is_learnt_from(tmp_path):
    banks = example("fraud_auprc")
    table = banks.payments()
    assert table["days_since_last"].isna().any()
    assert table.groupby("bank")["fraud"].sum()["Elm"] == 0
    pd.DataFrame(table).to_csv(tmp_path / "fraud.csv", index=False)
    options = ["--data", tmp_path / "fraud.csv", "--label", "fraud", "--site", "bank", "--learning-rate", "0.1"]
    folder = run("run", "auprc", *options, "--algorithm", "FCSG-M", "--rounds", "10", "--seeds", "1", out=tmp_path)
    last = read_csv(folder / "metrics.csv")[-1]
    assert float(last["average_precision"]) > 3 * float(last["prevalence"])
    at_elm = [row for row in read_csv(folder / "clients.csv") if row["client"] == "Elm"]
    assert [row["average_precision"] for row in at_elm] == ["undefined"]


def test_few_shots_are_learnt(capsys):
    example("fewshot").main(rounds=1, filters=8)
    assert (
        len(re.findall(r"round +\d+  accuracy on unseen characters 0\.\d{3} ± 0\.\d{3}", capsys.readouterr().out)) == 2
    )


@pytest.mark.parametrize("name", ["own_model", "fraud_auprc", "fewshot"])
def test_they_say_how_they_are_started(name):
    assert f"python examples/{name}.py" in (EXAMPLES / f"{name}.py").read_text().split('"""')[1]


def test_the_table_is_written_by_the_command(tmp_path):
    path = tmp_path / "fraud.csv"
    command = [sys.executable, EXAMPLES / "fraud_auprc.py", path]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert re.search(r"5850 payments at 5 banks, \d\.\d% fraud", done.stdout)
    assert len(pd.read_csv(path)) == 5850


def test_low_positives_are_lost_to_the_sigmoid(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    shown = example("lost_positives")
    monkeypatch.setattr(shown, "PLAN", replace(shown.PLAN, rounds=20))
    sigmoid, raw = (looks[20] for looks in shown.main().values())
    assert sigmoid.push_low < 0.05 * sigmoid.push_others
    assert raw.push_low > 0.5 * raw.push_others
    assert sigmoid.auroc + 0.1 < raw.auroc
