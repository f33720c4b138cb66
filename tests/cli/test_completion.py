"""Completion in shells: the script of bash is run by bash, those of the others name the same things."""

import shutil
import subprocess

import pytest

from fedcso.cli.commands import COMMANDS
from fedcso.cli.completion import gather, script_for

CASES = {
    ("re",): "resume report reproduce",
    ("run", "inv"): "invariant_logistic invariant_images",
    ("run", "x", "--alg"): "--algorithm",
    ("run", "x", "--algorithm", "FCSG"): "FCSG FCSG-M",
    ("run", "x", "--engine", "th"): "threads",
    ("run", "x", "--checkpoint"): "--checkpoint-rounds --checkpoint-seconds",
    ("reproduce", "table"): "table1 table2 tables",
    ("flower", "ap"): "approve",
    ("list", "es"): "estimators",
    ("report", "--le"): "--legend",
}


def test_bash_completes_commands_options_and_names(tmp_path):
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("there is no bash")
    (tmp_path / "script").write_text(script_for("bash"))
    tries = "\n".join(f"try fedcso {' '.join(words)}" for words in CASES)
    test = """
try() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _fedcso; echo "${COMPREPLY[@]}"; }
"""
    done = subprocess.run([bash, "-c", f"source {tmp_path}/script{test}{tries}"], capture_output=True, text=True)
    assert done.stderr == ""
    assert done.stdout.splitlines() == list(CASES.values())


def test_all_commands_and_options_are_gathered():
    found = gather()
    assert list(found) == list(COMMANDS)
    assert {"--rounds", "--tracking", "--dry-run", "--help-all"} <= set(found["run"].options)
    assert found["run"].values["--on-nonfinite"] == ["stop", "drop"]


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_know_the_same_names(shell):
    script = script_for(shell)
    assert all(command in script for command in COMMANDS)
    assert "invariant_logistic" in script
    assert "inner-batch" in script
    assert f"completion {shell}" in script
