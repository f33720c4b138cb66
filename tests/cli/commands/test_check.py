"""`fedcso check`: its exit codes, and what it says."""

from pathlib import Path

from tests.command_line import BAD_INPUT, FINE, call

OWN = Path(__file__).parents[2] / "checks" / "own.py"
EXAMPLE = Path(__file__).parents[3] / "examples" / "own_problem.py"
WRONG = 1


def test_a_right_problem_ends_with_the_next_command():
    outcome = call("check", f"{EXAMPLE}:task", "--patients", 10)
    assert outcome.code == FINE
    lines = outcome.out.splitlines()
    assert [line for line in lines if not line.startswith("passed ")] == [
        f"{EXAMPLE}:task: nothing is wrong",
        f"next     fedcso run {EXAMPLE}:task --patients 10",
    ]


def test_a_mistake_ends_with_one():
    outcome = call("check", f"{OWN}:crashing")
    assert outcome.code == WRONG
    assert outcome.err == ""
    (wrong,) = [line for line in outcome.out.splitlines() if line.startswith("wrong")]
    assert "own.py:" in wrong
    assert "in inner(x (2,), xi (3, 2), eta (3, 4, 2)): RuntimeError" in wrong


def test_methods_and_estimators_are_checked_too():
    assert call("check", f"{OWN}:ReturnsDict").code == WRONG
    assert call("check", f"{OWN}:Method", "--on", f"{EXAMPLE}:task").code == FINE
    assert call("check", f"{OWN}:single").code == WRONG


def test_bad_input_ends_with_two():
    for arguments, said in {
        (): "the name is missing",
        ("no.py:task",): "there is no file no.py",
        (f"{OWN}:tusk",): "did you mean task",
        (f"{OWN}:Right",): "a problem is checked with data, as part of a task",
        ("auprcc",): "did you mean auprc",
        (f"{EXAMPLE}:task", "--patiens", "3"): "did you mean --patients",
        ("plain", "--on", f"{EXAMPLE}:task"): "left out: plain is no method",
    }.items():
        outcome = call("check", *arguments)
        assert outcome.code == BAD_INPUT, arguments
        assert said in outcome.err


def test_an_error_in_a_users_code_points_to_their_line(tmp_path):
    outcome = call("run", f"{OWN}:crashing", "--rounds", 2, "--out", tmp_path)
    assert outcome.code == BAD_INPUT
    said, hint = outcome.err.splitlines()
    line = 1 + next(n for n, text in enumerate(OWN.read_text().splitlines()) if "@ x.reshape" in text)
    assert f"own.py:{line}, in inner(x (2,), xi (1, 2), eta (1, 10, 2)): RuntimeError: mat1 and mat2" in said
    assert "FEDCSO_TRACEBACK=1" in hint
