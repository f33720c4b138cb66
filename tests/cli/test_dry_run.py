"""--dry-run: says what would be done, with an estimate, and does not do it."""

import pytest

from fedcso.cli.work.dry_run import in_words
from tests.command_line import BAD_INPUT, FINE, QUADRATIC, call


def test_a_run_is_described_and_not_run(tmp_path):
    outcome = call("run", *QUADRATIC, "--algorithm", "FCSG", "FCSG-M", "--dry-run", "--out", tmp_path)
    assert outcome.code == FINE
    assert list(tmp_path.iterdir()) == []
    for words in ("would be run", "FCSG-M", "4 runs, about", "MB of memory", "an estimate", "nothing was run"):
        assert words in outcome.out


def test_a_sweep_is_described_by_its_first_part(tmp_path):
    grid = ["--algorithm", "FCSG-M", "--grid", "learning_rate=0.1,0.01,0.001", "--metric", "loss"]
    outcome = call("sweep", *QUADRATIC, *grid, "--tuning-seeds", 2, "--dry-run", "--out", tmp_path)
    assert outcome.code == FINE
    assert "6 runs" in outcome.out
    assert "then    the chosen settings" in outcome.out
    assert list(tmp_path.iterdir()) == []


def test_a_reproduction_shows_its_settings(tmp_path):
    outcome = call("reproduce", "figure1", "--quick", "--dry-run", "--out", tmp_path)
    assert outcome.code == FINE
    assert "experiment: figure1" in outcome.out
    assert "would be run first" in outcome.out
    assert list(tmp_path.iterdir()) == []


def test_a_fit_shows_how_long_it_searches(tmp_path):
    table = tmp_path / "t.csv"
    lines = [f"{n % 7},{n * 3 % 11},{int(n % 9 == 0)},{'ab'[n % 2]}" for n in range(400)]
    table.write_text("p,q,y,s\n" + "\n".join(lines))
    outcome = call("fit", table, "--label", "y", "--site", "s", "--minutes", 0.2, "--dry-run", "--out", tmp_path / "r")
    assert outcome.code == FINE, outcome.err
    assert "at most 0.2 minutes" in outcome.out
    assert not (tmp_path / "r").exists()


def test_mistakes_are_reported_as_without_it(tmp_path):
    outcome = call("run", *QUADRATIC, "--learning-rate", "-1", "--dry-run", "--out", tmp_path)
    assert outcome.code == BAD_INPUT
    assert "learning_rate" in outcome.err


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.2, "a second"),
        (40, "40 seconds"),
        (80, "80 seconds"),
        (150, "2.5 minutes"),
        (9000, "2.5 hours"),
        (2e5, "2.3 days"),
    ],
)
def test_times_are_said_in_words(seconds, words):
    assert in_words(seconds) == words
