"""`fedcso report`: figures, tables and the page again, from the metrics alone."""

import pytest

from tests.command_line import (
    FINE,
    INTERRUPTED,
    LOGISTIC,
    QUADRATIC,
    call,
    contents,
    interrupt_after,
    run,
    without_drawing,
)

MADE_ANEW = ["curves.png", "curves.pdf", "table.csv", "table.md", "table.tex", "report.html"]


def test_what_was_deleted_is_made_again_as_it_was(tmp_path):
    folder = run("run", *QUADRATIC, "--algorithm", "FCSG", "SCAFFOLD", out=tmp_path)
    before = {name: (folder / name).read_bytes() for name in MADE_ANEW}
    for name in MADE_ANEW:
        (folder / name).unlink()
    outcome = call("report", folder)
    assert outcome.code == FINE
    assert str(folder / "report.html") in outcome.out
    for name in MADE_ANEW:
        assert (folder / name).read_bytes() == before[name], name


@pytest.fixture
def blank(tmp_path, monkeypatch):
    without_drawing(monkeypatch)
    return tmp_path


def test_it_does_not_need_checkpoints_or_models(blank):
    folder = run("run", *QUADRATIC, out=blank)
    before = contents(folder)
    for path in [*folder.glob("*.safetensors"), *folder.glob("checkpoints/*/*/*")]:
        path.unlink()
    assert call("report", folder).code == FINE
    assert {name: contents(folder)[name] for name in MADE_ANEW} == {name: before[name] for name in MADE_ANEW}


def test_several_folders_are_reported_in_turn(blank):
    several = [run("run", *QUADRATIC, out=blank / "a"), run("run", *LOGISTIC, out=blank / "b")]
    outcome = call("report", *several)
    assert outcome.code == FINE
    for folder in several:
        assert f"{folder} (done)" in outcome.out


def test_an_unfinished_run_has_a_report_too(blank, monkeypatch):
    with monkeypatch.context() as patch:
        interrupt_after(patch, rounds=2, unit="FCSG-M")
        folder = run("run", *LOGISTIC, out=blank, code=INTERRUPTED)
    assert not (folder / "report.html").exists()
    outcome = call("report", folder)
    assert outcome.code == FINE
    assert f"{folder} (interrupted)" in outcome.out
    assert "<td>FCSG-M</td>" in (folder / "report.html").read_text()


def test_a_sweep_has_a_report_too(blank):
    options = ["--algorithm", "FCSG", "--grid", "learning_rate=0.1,0.01", "--tuning-seeds", "[7]"]
    folder = run("sweep", *QUADRATIC, *options, out=blank)
    assert call("report", folder).code == FINE


def test_it_says_which_models_are_exported(blank):
    folder = run("run", *LOGISTIC, "--algorithm", "FCSG", out=blank)
    outcome = call("report", folder)
    assert outcome.code == FINE
    assert "model   FCSG: seed " in outcome.out
    assert "best validation accuracy" in outcome.out


def test_a_folder_of_an_older_version_is_reported_without_a_best_model_and_can_be_completed(blank):
    """It has no declarations of metrics, and its best model was chosen on test data."""
    folder = run("run", *LOGISTIC, "--algorithm", "FCSG", out=blank)
    before = contents(folder)
    for name in ("metrics.json", "random-iterate.csv", "model-random.safetensors"):
        (folder / name).unlink()
    outcome = call("report", folder)
    assert outcome.code == FINE
    assert "has no metrics.json" in outcome.out
    assert "model   " not in outcome.out
    assert call("resume", folder).code == FINE
    assert contents(folder) == before


def test_a_figure_for_a_paper_is_drawn_as_asked(tmp_path):
    folder = run("run", *QUADRATIC, "--algorithm", "FCSG", "FCSG-M", out=tmp_path)
    before = contents(folder)
    style = ["--x", "samples", "--size", "3.3x2.5", "--legend", "outside", "--labels", "FCSG-M=ours"]
    outcome = call("report", folder, "--metric", "gradient_norm", *style)
    assert outcome.code == FINE
    assert outcome.out.splitlines() == [
        f"figure  {folder / 'paper-gradient_norm-samples'}.{kind}" for kind in ("pdf", "png")
    ]
    assert b"/MediaBox [ 0 0 237.6 180 ]" in (folder / "paper-gradient_norm-samples.pdf").read_bytes()
    assert {name: contents(folder)[name] for name in before} == before  # nothing else is drawn again
    assert "did you mean gradient_norm" in call("report", folder, "--metric", "gradientnorm").err
