"""Help: short by default, everything with --help-all, and defaults as numbers."""

import yaml

from fedcso.algorithms import ALGORITHMS
from tests.command_line import BAD_INPUT, FINE, QUADRATIC, call, run, without_drawing


def test_the_short_help_shows_common_options_and_names_the_way_to_all():
    outcome = call("run", "--help")
    assert outcome.code == FINE
    for option in ("--algorithm", "--rounds", "--inner-batch", "--learning-rate", "--estimator", "--dry-run"):
        assert f"{option} " in outcome.out
    for option in ("--checkpoint-seconds", "--server-decay", "--topology", "--weight-decay"):
        assert option not in outcome.out
    assert "more options: fedcso run PROBLEM --help-all" in outcome.out
    assert len(outcome.out.splitlines()) < 75


def test_the_long_help_shows_all_options():
    outcome = call("run", "--help-all")
    assert outcome.code == FINE
    names = {name.replace("_", "-") for method in ALGORITHMS for name in ALGORITHMS.definition(method).fields}
    for option in (*names, "checkpoint-seconds", "topology", "weight-decay", "learning-rate", "init"):
        assert f"--{option} " in outcome.out
    assert "more options" not in outcome.out


def test_both_show_the_options_of_a_problem_and_of_the_chosen_methods():
    method = ["nested_quadratic", "--algorithm", "Local-SCGD"]
    short, long = (call("run", *method, option).out for option in ("--help", "--help-all"))
    assert "--coupling " in short
    assert "--tracking " in short
    assert "--momentum " not in short
    assert "--momentum " in long


def test_defaults_of_hyper_parameters_are_numbers():
    lines = " ".join(call("run", "nested_quadratic", "--algorithm", "FCSG", "SLATE-M", "--help").out.split())
    rates = {name: ALGORITHMS.definition(name).defaults["learning_rate"] for name in ("FCSG", "SLATE-M")}
    same = len(set(rates.values())) == 1
    shown = rates["FCSG"] if same else ", ".join(f"{name} {value}" for name, value in rates.items())
    assert f"(default: {shown})" in lines
    assert "null" not in lines


def test_defaults_are_those_of_the_brackets_and_of_the_problem():
    bracket = call("run", "nested_quadratic", "--algorithm", "FCSG(learning_rate=0.07)", "--help").out
    assert "(default: 0.07)" in " ".join(bracket.split())
    recommended = " ".join(call("run", "auprc", "--help").out.split())
    assert "null" not in recommended


def test_a_printed_configuration_has_numbers_and_repeats_the_run(tmp_path, monkeypatch):
    without_drawing(monkeypatch)
    printed = call("run", *QUADRATIC, "--algorithm", "FCSG-M", "--print-config")
    assert printed.code == FINE
    values = yaml.safe_load(printed.out)
    assert values["learning_rate"] == 0.01
    assert values["momentum"] == 0.1
    assert None not in values.values()
    (tmp_path / "c.yaml").write_text(printed.out)
    one = run("run", *QUADRATIC, "--algorithm", "FCSG-M", out=tmp_path / "a")
    two = run("run", "--config", tmp_path / "c.yaml", out=tmp_path / "b")
    assert (one / "table.md").read_text().split("|")[:20] == (two / "table.md").read_text().split("|")[:20]


def test_names_that_are_nearly_right_are_suggested():
    for arguments, said in {
        ("rnu",): "did you mean run",
        ("run", "invariant_logistc"): "did you mean invariant_logistic",
        ("run", "nested_quadratic", "--algorithm", "FSCG"): "did you mean FCSG",
        ("run", "nested_quadratic", "--estimator", "plan"): "did you mean plain",
        ("run", "nested_quadratic", "--roundz", "3"): "did you mean --rounds",
        ("completion", "bsh"): "did you mean bash",
        ("reproduce", "figure11"): "did you mean figure1",
    }.items():
        outcome = call(*arguments)
        assert outcome.code == BAD_INPUT, arguments
        assert said in outcome.err
