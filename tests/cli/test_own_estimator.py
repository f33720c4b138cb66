"""One's own estimator on the command line: it is used, kept, and refused if it is none."""

import pytest

from tests.command_line import BAD_INPUT, QUADRATIC, call, read_csv, run, without_drawing

OWN = """
from fedcso import Estimator


@Estimator
def same(problem, x, batch):
    return problem.outer(problem.inner(x, batch.xi, batch.eta), batch.xi)


@Estimator
def twice(problem, x, batch):
    return 2 * same(problem, x, batch)


def function(problem, x, batch):
    return same(problem, x, batch)
"""


@pytest.fixture
def own(tmp_path, monkeypatch):
    without_drawing(monkeypatch)
    path = tmp_path / "mine.py"
    path.write_text(OWN)
    return path


def losses(folder):
    return [float(row["loss"]) for row in read_csv(folder / "metrics.csv")]


def test_it_is_used_in_a_run_and_its_file_is_kept(own, tmp_path):
    method = [*QUADRATIC, "--algorithm", "FCSG"]
    plain = run("run", *method, "--engine", "reference", out=tmp_path / "a")
    same = run("run", *method, "--estimator", f"{own}:same", "--engine", "reference", out=tmp_path / "b")
    twice = run("run", *method, "--estimator", f"{own}:twice", out=tmp_path / "c")
    faster = run("run", *method, "--learning-rate", 0.02, out=tmp_path / "d")
    assert losses(same) == pytest.approx(losses(plain), rel=1e-9)
    assert losses(twice) == pytest.approx(losses(faster), rel=1e-9)
    assert losses(twice) != losses(plain)
    (kept,) = (same / "sources").iterdir()
    assert kept.read_text() == OWN
    assert call("resume", same).code == 0
    own.write_text(OWN + "# changed")
    assert "has changed" in call("resume", same).err


def test_what_is_no_estimator_is_refused(own):
    for name, said in {"function": "a fedcso.Estimator, as the decorator", "sam": "did you mean same"}.items():
        outcome = call("run", *QUADRATIC, "--estimator", f"{own}:{name}")
        assert outcome.code == BAD_INPUT
        assert said in outcome.err
