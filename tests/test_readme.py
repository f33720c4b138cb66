"""What the README shows is what runs."""

import re
import subprocess
import sys
from pathlib import Path

from fedcso.cli.main import COMMANDS, main

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", README, re.S)


def test_the_own_problem_is_the_example_and_short():
    example = (ROOT / "examples" / "own_problem.py").read_text()
    assert example in BLOCKS
    assert sum(bool(line.strip()) for line in example.splitlines()) <= 25


def test_the_own_problem_is_solved_from_the_command_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    command = re.search(r"^fedcso (run examples/own_problem.py.*)$", README, re.M)[1]
    assert main([*command.split(), "--out", str(tmp_path)]) == 0
    (folder,) = tmp_path.iterdir()
    assert {"curves.png", "table.md", "metrics.csv", "report.html"} <= {file.name for file in folder.iterdir()}


def test_the_python_example_runs(tmp_path):
    (example,) = [block for block in BLOCKS if "fedcso.run(" in block]
    command = [sys.executable, "-c", example]
    answer = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    accuracy = float(re.search(r"FCSG +last +([\d.]+)", answer.stdout)[1])
    assert 0.5 < accuracy <= 1
    assert (tmp_path / "curves.png").is_file()


def test_every_command_that_is_shown_is_there():
    shown = set(re.findall(r"`fedcso ([a-z][\w-]*)", README))
    assert len(shown) > 10
    assert shown <= set(COMMANDS)


def test_every_link_leads_to_a_file_that_is_there():
    text = re.sub(r"```.*?```", "", README, flags=re.S)
    for path in re.findall(r"\]\(((?!http)[^)]+)\)", text):
        assert (ROOT / path).is_file(), path
