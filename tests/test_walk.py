"""The walk through the README takes every step of it, and reports failures."""

from tests import walk
from tests.walk import ROOT, Outcome, Step

README = (ROOT / "README.md").read_text()


def lines_in_fences(text):
    """Return all lines between two fences, found in another way than the walk finds them."""
    return [line for part in text.split("\n```")[1::2] for line in part.split("\n")[1:] if line.strip()]


def test_every_line_of_code_in_the_readme_is_a_step_or_part_of_one():
    walked = [line for step in walk.steps(README) for line in step.code.splitlines() if line.strip()]
    assert walked == lines_in_fences(README)
    assert len(walked) > 40


def test_the_first_command_makes_the_environment_that_others_use():
    first, *others = walk.steps(README)
    assert first.code.startswith("make run ")
    assert any(step.code.startswith("fedcso ") for step in others)


def test_steps_of_a_page():
    page = "text\n\n```\nfirst  # a note\n\nsecond\n```\n\n```python\nx = 1\n\nprint(x)\n```\n"
    assert list(walk.steps(page)) == [Step("first  # a note"), Step("second"), Step("x = 1\n\nprint(x)\n", "python")]


def test_steps_run_in_the_clone_with_its_environment(tmp_path):
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    command = tmp_path / ".venv" / "bin" / "hello"
    command.write_text("#!/bin/sh\npwd >here\nexit 3\n")
    command.chmod(0o755)
    assert walk.take(Step("hello"), tmp_path).code == 3
    assert (tmp_path / "here").read_text().strip() == str(tmp_path)


def test_the_table_has_commands_exit_codes_and_seconds():
    outcomes = [Outcome(Step("fedcso tour"), 0, 61.2), Outcome(Step("make test"), None)]
    assert walk.table(outcomes).splitlines()[2:] == ["| `fedcso tour` | 0 | 61 |", "| `make test` | left out | |"]
