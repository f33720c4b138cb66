"""`fedcso theory`: Table 1 with numbers."""

import re

import pytest

from fedcso.theory.prescribe import THEOREMS
from tests.command_line import BAD_INPUT, FINE, call

GIVEN = ["--S-f", "0.25", "--L-f", "1", "--S-g", "0", "--L-g", "2", "--sigma-g", "1", "--gap", "1"]
QUADRATIC = ["nested_quadratic", "--dimension", "1"]


def rows(text, start):
    """The cells of the lines of a table that begin so."""
    lines = [line.strip("│ ").split("│") for line in text.splitlines() if line.startswith("│")]
    return [[cell.strip() for cell in line] for line in lines if line[0].strip() == start]


def test_constants_and_every_method_stand_in_tables():
    outcome = call("theory", "--epsilon", "0.5", "--clients", "4", *GIVEN)
    assert outcome.code == FINE, outcome.err
    assert rows(outcome.out, "S_F")[0][1] == "1.0000"
    for method in THEOREMS:
        ((_, clients, *_, epsilon, proven),) = rows(outcome.out, method)
        assert clients == ("1" if method in ("BSGD", "BSpiderBoost") else "4")
        assert float(epsilon) <= 0.5
        assert f"samples ε^−{THEOREMS[method].exponents[0]}" in proven


def test_a_problem_brings_its_constants_and_a_command_to_run():
    outcome = call("theory", *QUADRATIC, "--epsilon", "8", "--noise", "0.5")
    assert outcome.code == FINE, outcome.err
    assert rows(outcome.out, "S_f")[0][1:3] == ["1.0000", "exactly"]
    commands = re.findall(r"^fedcso (run nested_quadratic .*)$", outcome.out, re.M)
    assert len(commands) == len(THEOREMS)
    assert all("--noise 0.5 --algorithm" in command for command in commands)
    assert "--clients 16" in commands[0]


def test_the_command_runs(tmp_path):
    outcome = call("theory", *QUADRATIC, "--epsilon", "8")
    command = re.search(r"^fedcso (run .*'FCSG\(.*)$", outcome.out, re.M)[1]
    words = [word.strip("'") for word in re.findall(r"'[^']*'|\S+", command)]
    assert call(*words, "--seeds", "1", "--out", tmp_path).code == FINE


def test_given_constants_take_the_place_of_the_problems():
    outcome = call("theory", *QUADRATIC, "--steps", "500", "--gap", "7.5")
    assert outcome.code == FINE, outcome.err
    assert rows(outcome.out, "gap")[0][1] == "7.5000"


def test_constants_from_samples_say_so_with_their_uncertainty():
    outcome = call("theory", "classification", "--clients", "2", "--steps", "100", "--samples", "10")
    assert outcome.code == FINE, outcome.err
    _, value, known, _ = rows(outcome.out, "L_f")[0]
    assert known == "from samples"
    assert "±" in value
    assert rows(outcome.out, "σ_g")[0][1] == "0.0000"  # g is the identity


def estimators(text):
    """Return m, T, rounds, samples and the order by estimator and method."""
    lines = [line.strip("│ ").split("│") for line in text.splitlines() if line.startswith("│")]
    cells = [[cell.strip() for cell in line] for line in lines]
    return {(line[0], line[3]): line[4:] for line in cells if len(line) == 9}


def test_estimators_are_compared_where_their_constants_are_known():
    outcome = call("theory", "invariant_logistic", "--epsilon", "0.5", "--test-points", "10", "--noise", "2")
    assert outcome.code == FINE, outcome.err
    found = estimators(outcome.out)
    assert int(found["extrapolated", "Acc-FCSG-M"][0]) < int(found["plain", "Acc-FCSG-M"][0])
    assert found["extrapolated", "Acc-FCSG-M"][-1] == "samples ε^−3.5"
    assert found["independent_jacobian", "FCSG"] == ["–", "–", "–", "–", "samples ε^−4.5"]
    assert found["rt_mlmc", "FCSG"][-1] == "samples ε^−4"
    assert found["rt_mlmc", "Acc-FCSG-M"][-1] == "not shown"
    assert not any(name == "mean_outside" for name, _ in found)


def test_an_estimator_takes_the_place_of_the_plain_one():
    outcome = call("theory", *QUADRATIC, "--epsilon", "8", "--estimator", "extrapolated")
    assert outcome.code == FINE, outcome.err
    (fcsg,) = rows(outcome.out, "FCSG")
    assert fcsg[7] == "2"  # m: no bias is left
    assert "samples ε^−4.5" in fcsg[-1]
    commands = re.findall(r"^fedcso run nested_quadratic .*$", outcome.out, re.M)
    assert all(command.endswith("--estimator extrapolated") for command in commands)
    assert len(commands) == len(THEOREMS)


def test_without_a_constant_only_orders_are_told_and_a_given_one_is_used():
    arguments = ["theory", "--epsilon", "0.5", "--clients", "4", *GIVEN, "--estimator", "three_level"]
    outcome = call(*arguments)
    assert outcome.code == FINE, outcome.err
    assert "only the orders below are known for three_level: C of three_level is not known here" in outcome.out
    assert rows(outcome.out, "FCSG") == []
    assert estimators(outcome.out)["three_level", "FCSG"] == ["–", "–", "–", "–", "samples ε^−4.33"]
    outcome = call(*arguments, "--bias-constant", "70")
    assert rows(outcome.out, "FCSG")[0][7] == "8"  # the first multiple of 4 with 2 (70/m³)² ≤ ε²/2
    assert estimators(outcome.out)["three_level", "FCSG"][0] == "8"


def test_constants_of_another_problem_take_away_what_is_known_about_the_bias():
    outcome = call("theory", *QUADRATIC, "--epsilon", "8", "--L-g", "3", "--estimator", "extrapolated")
    assert "C of extrapolated is not known here" in outcome.out


MISTAKES = {
    "nothing": ([], ["constants are missing", "name a problem, or give --S-f", "--gap"]),
    "some constants": ([*GIVEN[:4], "--epsilon", "1"], ["--S-g", "--gap"]),
    "no wish": ([*GIVEN], ["epsilon is missing", "the number of steps instead"]),
    "two wishes": ([*GIVEN, "--epsilon", "1", "--steps", "100"], ["epsilon = 1.0", "one of the two"]),
    "no accuracy": ([*GIVEN, "--epsilon", "0"], ["epsilon = 0.0"]),
    "too small": ([*GIVEN, "--epsilon", "1e-9"], ["larger", "10^18"]),
    "a constant below 0": ([*GIVEN, "--epsilon", "1", "--gap", "-1"], ["gap = -1.0", "above 0"]),
    "problem": (["nested_quadratik", "--epsilon", "1"], ["did you mean nested_quadratic"]),
    "option": (
        [*QUADRATIC, "--epsilon", "1", "--noize", "2"],
        ["did you mean --noise?", "(see: fedcso theory nested_quadratic --help)"],
    ),
    "no samples": ([*QUADRATIC, "--epsilon", "1", "--samples", "0"], ["samples = 0 must be", "at least 1"]),
    "radius": ([*QUADRATIC, "--epsilon", "1", "--radius", "-1"], ["radius = -1.0 must be", "above 0"]),
    "estimator": ([*QUADRATIC, "--epsilon", "1", "--estimator", "extrapolatd"], ["did you mean extrapolated"]),
    "mean outside": (
        [*QUADRATIC, "--epsilon", "1", "--estimator", "mean_outside"],
        ["no number of inner samples reduces its bias"],
    ),
    "bias below 0": ([*GIVEN, "--epsilon", "1", "--bias-constant", "-1"], ["bias_constant = -1.0"]),
    "few steps": ([*QUADRATIC, "--steps", "3"], ["steps = 3", "at least 16"]),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_told_in_a_line(mistake):
    arguments, says = MISTAKES[mistake]
    outcome = call("theory", *arguments)
    assert outcome.code == BAD_INPUT
    assert outcome.out == ""
    assert outcome.err.count("\n") == 1
    for fragment in says:
        assert fragment in outcome.err
