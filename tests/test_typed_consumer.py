"""A user's typed program works, and `make types` checks it, with the mistakes in it (see there)."""

import tomllib
from pathlib import Path

from tests import typed_consumer

ROOT = Path(__file__).parent.parent


def test_the_program_runs(tmp_path):
    differences = typed_consumer.run_and_compare(tmp_path)
    assert len(differences) == 1


def test_the_type_checker_looks_at_it_and_complains_of_marks_without_a_mistake():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mypy"]
    file = Path(typed_consumer.__file__)
    assert file.relative_to(ROOT).as_posix() in settings["files"]
    assert settings["strict"]  # includes warn_unused_ignores
    assert settings.get("warn_unused_ignores", True)
    _, mistakes = file.read_text().split("def make_mistakes")
    assert mistakes.count("type: ignore[") == 10
