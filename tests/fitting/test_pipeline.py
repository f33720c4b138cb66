from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

import fedcso
from fedcso.core.errors import FedcsoError
from fedcso.fitting import python
from fedcso.fitting.config import FitConfig
from fedcso.fitting.pipeline import search
from fedcso.fitting.python import resume_fit
from fedcso.fitting.search import Search
from fedcso.fitting.train import Trainer
from fedcso.runs.callbacks import Interrupted
from fedcso.runs.config import RunConfig
from fedcso.runs.folder import RunFolder
from fedcso.runs.study import run_in_memory
from tests.fitting.small_sites import SITES, search_little, small_sites, table


@pytest.fixture(scope="module")
def quick():
    with pytest.MonkeyPatch.context() as patch:
        search_little(patch)
        yield


def fit(frame, out, **options):
    said: list[str] = []
    options = {"net": "linear"} | options
    return fedcso.fit(frame, "ill", "hospital", out=str(out), say=said.append, **options), said


@pytest.fixture(scope="module")
def fitted(quick, tmp_path_factory):
    return fit(table(), tmp_path_factory.mktemp("fit"))


def test_it_leaves_everything_people_need(fitted):
    result, _ = fitted
    for name in ("decision.html", "model-card.md", "trials.csv", "chosen.yaml", "model/model.onnx", "model/predict.py"):
        assert (result.folder / name).is_file(), name
    assert RunFolder.open(result.folder).status == "done"


def test_the_chosen_model_is_the_best_on_validation_data(fitted):
    result, _ = fitted
    trials = result.trials
    late = trials[trials["rung"] != "first"]
    best = late.loc[late["validation average precision"].idxmax()]
    assert result.decision.settings["objective"] == best["objective"]
    assert result.decision.settings["learning rate"] == best["learning rate"]


def test_it_is_compared_with_what_one_would_have_got_otherwise(fitted):
    result, _ = fitted
    compared = result.comparison
    names = list(compared["method"])
    assert names[0].endswith("(chosen)")
    for beginning in ("the same method on pooled", "the same method at one", "gradient-boosted trees on", "gradient-"):
        assert any(name.startswith(beginning) for name in names)
    pooled = compared[compared["method"].str.contains("pooled")]
    assert set(pooled["data"]) == {"needs the data in one place"}


def test_new_rows_are_scored_with_probabilities_and_alerts(fitted):
    result, _ = fitted
    rows = table(50, seed=9).drop(columns=["ill", "hospital"])
    scored = result.predict(rows)
    assert scored["probability"].between(0, 1).all()
    assert set(scored.filter(like="alert").to_numpy().ravel()) <= {0, 1}


def test_the_test_data_are_looked_at_after_everything_is_chosen(fitted):
    _, said = fitted
    assert [line for line in said if "test data" in line] == ["looking at the test data, once"]
    assert said.index("looking at the test data, once") > max(n for n, line in enumerate(said) if "rung" in line)


def test_what_left_each_site_is_counted(fitted):
    result, _ = fitted
    sent = result.decision.sent
    assert {one.site for one in sent} == set(SITES)
    updates = [one for one in sent if one.what.startswith("updates")]
    assert all(one.bytes == 4 * one.values > 0 for one in updates)


def test_the_chosen_settings_run_by_themselves(fitted):
    result, _ = fitted
    chosen = yaml.safe_load((result.folder / "chosen.yaml").read_text())
    config = RunConfig.from_flat({**chosen, "data": "digits", "clients": 2})
    assert config.plan.weights == "size"
    assert config.built()


def test_the_same_seed_gives_the_same_result_and_interrupted_it_ends_the_same(fitted, quick, tmp_path, monkeypatch):
    result, _ = fitted
    from fedcso.runs import study

    calls = []
    run_rest = study._run_rest

    def stop_after_some(*arguments):
        calls.append(arguments)
        if len(calls) == 7:
            raise Interrupted("stopped")
        return run_rest(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(study, "_run_rest", stop_after_some)
        with pytest.raises(Interrupted, match="fedcso resume"):
            fit(table(), tmp_path)
    (folder,) = tmp_path.glob("*_fit_*")
    again = resume_fit(folder, say=lambda line: None)
    pd.testing.assert_frame_equal(again.trials, result.trials)
    pd.testing.assert_frame_equal(again.comparison, result.comparison)
    assert (folder / "model/model.onnx").read_bytes() == (result.folder / "model/model.onnx").read_bytes()


def test_a_frame_is_written_in_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr(python, "ROWS", 7)
    frame = table(20)
    written = Path(python._as_file(frame, str(tmp_path)))
    assert written.read_text() == frame.to_csv(index=False)
    assert list(tmp_path.iterdir()) == [written]


def test_a_model_that_was_still_improving_is_noted(quick, monkeypatch):
    find = Search.find

    def find_something_unfinished(self):
        ranked = find(self)
        self.unfinished = True
        return ranked

    monkeypatch.setattr(Search, "find", find_something_unfinished)
    found = search(Trainer(small_sites(), run_in_memory), FitConfig("t.csv", net="linear"), lambda line: None)
    steps = found.chosen.total_steps
    advice = "give the search more time with --minutes"
    assert found.notes == [f"the model was still improving after {steps} steps: {advice}"]


def test_resuming_with_other_data_is_refused(fitted, tmp_path):
    import shutil

    result, _ = fitted
    folder = tmp_path / result.folder.name
    shutil.copytree(result.folder, folder)
    other = tmp_path / "other.csv"
    table(seed=5).to_csv(other, index=False)
    config = yaml.safe_load((folder / "config.yaml").read_text()) | {"data": str(other)}
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    with pytest.raises(FedcsoError, match="was started with other data"):
        resume_fit(folder)


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        (lambda t: t.assign(ill=0), {}, "positive"),
        (lambda t: t.assign(ill=range(len(t))), {}, "positive"),
        (lambda t: t[["ill", "hospital"]], {}, "no columns to learn from"),
        (lambda t: t, {"minutes": 0}, "minutes = 0"),
        (lambda t: t, {"minute": 3}, "unknown option 'minute'"),
        (lambda t: t, {"net": "wide"}, "net 'wide'"),
        (lambda t: t.assign(ill=[1, *[0] * (len(t) - 1)]), {}, "no site has a positive validation row"),
    ],
)
def test_bad_input_is_refused_before_anything_is_run(change, options, message, tmp_path):
    with pytest.raises(FedcsoError, match=message):
        fit(change(table()), tmp_path, **options)
    assert not list(tmp_path.glob("*_fit_*"))


def test_one_site_only_is_fitted_with_a_note(quick, tmp_path):
    result, said = fit(table(300).assign(hospital="north"), tmp_path)
    assert any("all rows are at one site" in line for line in said)
    assert not any(one.name.endswith("alone") for one in result.decision.contenders)


def test_pictures_are_fitted_too(quick, tmp_path):
    rng = np.random.default_rng(0)
    ill = (rng.random(150) < 0.3).astype(int)
    images = rng.integers(0, 120, (150, 1, 16, 16)).astype(np.uint8)
    images[ill == 1, :, 4:10, 4:10] += 100
    np.savez(tmp_path / "scans.npz", images=images, ill=ill, hospital=rng.choice(SITES, 150))
    result, _ = fit(tmp_path / "scans.npz", tmp_path, net="auto")
    assert not result.decision.importance
    assert not any("trees" in one.name for one in result.decision.contenders)
    assert (result.folder / "model/model.onnx").is_file()
