"""`fedcso diagnose`: at the start of a problem, and at the models of a run."""

import pytest

from tests.command_line import BAD_INPUT, FINE, LOGISTIC, call, read_csv, run, without_drawing

QUICK = ["--samples", "64"]


def test_a_problem_is_diagnosed_at_its_start():
    outcome = call("diagnose", "nested_quadratic", "--clients", "3", "--sizes", "1,4", *QUICK)
    assert outcome.code == FINE, outcome.err
    assert "N·b·q = 150 estimates in a round" in outcome.out
    assert "m = 1: TOO SMALL: the bias is " in outcome.out
    assert "it takes about m = " in outcome.out


def test_the_plan_may_be_another():
    outcome = call("diagnose", "nested_quadratic", "--clients", "3", "--local-steps", "2", "--outer-batch", "5", *QUICK)
    assert "N·b·q = 30 estimates" in outcome.out


def test_the_noise_decides_how_large_m_must_be():
    quiet, loud = (
        call("diagnose", "invariant_logistic", "--noise", noise, "--sizes", "1", "--test-points", "10")
        for noise in ("0.01", "5")
    )
    assert "m = 1: large enough" in quiet.out
    assert "m = 1: TOO SMALL" in loud.out


@pytest.fixture
def folder(tmp_path, monkeypatch):
    without_drawing(monkeypatch)
    return run("run", *LOGISTIC, "--algorithm", "FCSG", "FCSG-M", "--diagnose-every", "2", out=tmp_path)


def test_a_run_is_diagnosed_at_its_last_models(folder):
    outcome = call("diagnose", folder, "--sizes", "1,2", "--target", "0.001", *QUICK)
    assert outcome.code == FINE, outcome.err
    assert "FCSG, seed 0: N·b·q = 6 estimates" in outcome.out
    assert "FCSG-M, seed 0" in outcome.out
    assert "to bring the bias below 0.001" in outcome.out


def test_the_columns_of_a_run_stand_in_its_metrics(folder):
    rows = read_csv(folder / "metrics.csv")
    assert {row["round"] for row in rows if row["bias"]} == {"0", "2"}
    assert all(row["noise"] and row["gradient_estimate"] for row in rows if row["bias"])


def test_a_folder_of_a_run_whose_m_grew_is_told_what_to_do(folder):
    """Earlier versions had --inner-batch-most."""
    config = folder / "config.yaml"
    config.write_text(config.read_text() + "inner_batch_most: 8\n")
    for command in ("resume", "diagnose"):
        outcome = call(command, folder)
        assert outcome.code == BAD_INPUT
        assert "inner_batch_most = 8 must be left out: m no longer changes during a run" in outcome.err


MISTAKES = {
    "nothing": ([], ["the problem or run folder is missing"]),
    "problem": (["nested_quadratik"], ["did you mean nested_quadratic"]),
    "sizes": (["nested_quadratic", "--sizes", "1,many"], ["sizes = '1,many'"]),
    "sizes that do not fit": (["nested_quadratic", "--sizes", "3,4"], ["divisor of 8"]),
    "target": (["nested_quadratic", "--target", "0"], ["target = 0.0"]),
    "samples": (["nested_quadratic", "--samples", "0"], ["samples = 0"]),
    "option": (
        ["nested_quadratic", "--sise", "1"],
        ["did you mean --sizes ", "(see: fedcso diagnose nested_quadratic --help)"],
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_told_in_a_line(mistake):
    arguments, says = MISTAKES[mistake]
    outcome = call("diagnose", *arguments)
    assert outcome.code == BAD_INPUT
    assert outcome.err.count("\n") == 1
    for fragment in says:
        assert fragment in outcome.err


def test_folders_without_models_are_told_how_to_get_them(folder):
    (folder / "model-final.safetensors").unlink()
    outcome = call("diagnose", folder)
    assert outcome.code == BAD_INPUT
    assert f"fedcso resume {folder}" in outcome.err
