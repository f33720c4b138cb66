"""The end of a run over sites with tables: calibration, thresholds and a model, from counts alone."""

import json

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("flwr", reason="needs Flower: pip install 'fedcso[flower]'")

from fedcso.core.errors import FedcsoError
from fedcso.federation.counting import SiteCounts
from fedcso.federation.decisions import as_rows
from fedcso.federation.request import COUNTS, Order
from fedcso.federation.site import Site
from fedcso.federation.wire import pack
from fedcso.fitting.exported import Model
from fedcso.reports.calibration import Calibration
from fedcso.reports.held import Held
from fedcso.reports.reliability import brier_score
from fedcso.reports.score_counts import fixed_bins
from fedcso.reports.thresholds import Threshold
from fedcso.runs import checkpoint
from fedcso.runs.study import as_file_name
from tests.federation.in_process import TableSites
from tests.fitting.small_sites import table

SETTINGS = {
    "problem": "cross_entropy",
    "label": "ill",
    "drop": "hospital",
    "algorithm": ["FedAvg(learning_rate=0.5)"],
    "net": "mlp",
    "rounds": 4,
    "local_steps": 10,
    "outer_batch": 32,
    "evaluate_every": 2,
    "weights": "size",
}


HONEST = ("north", "south", "west")


def tables():
    others = {"tiny": table(40, seed=1), "lying": table(100, seed=2), "silent": table(100, seed=3)}
    return dict(list(table(900).groupby("hospital"))) | others


def spoil(words, tree):
    return pack(words, tree | {"test": tree["test"] | {"positives": tree["test"]["positives"] - 1}})


@pytest.fixture(scope="module")
def ended(tmp_path_factory):
    """A run in which one site has few rows, one lies about its counts, and one does not send any."""
    sites = TableSites(
        tmp_path_factory.mktemp("federation"), tables(), {"lying": spoil}, {"silent"}, smallest_count={"tiny": 4}
    )
    with pytest.MonkeyPatch.context() as patch:
        folder = sites.run(patch, **SETTINGS, thresholds={"precision": 0.4, "recall": 0.7})
    return sites, folder


def held_at_sites(sites, folder):
    """The scores of the chosen model at the sites that counted them, by part."""
    agreement = json.loads((folder.path / "sites.json").read_text())["agreement"]
    (place,) = (folder.path / "checkpoints" / as_file_name(SETTINGS["algorithm"][0])).iterdir()
    (trace,) = checkpoint.newest(place).traces
    found = {"validation": [], "test": []}
    for name in HONEST:
        order = Order(folder.config(), sites.names, agreement)
        holding = Site.of(sites.own(name)).holding(order, sites.folder)
        for part, held in found.items():
            held.append(Held.of(holding.judge, trace.best, getattr(holding, part)))
    return {
        part: (np.concatenate([one.scores for one in held]), np.concatenate([one.labels for one in held]))
        for part, held in found.items()
    }


def test_every_site_is_asked_once_after_training(ended):
    sites, folder = ended
    assert folder.status == "done"
    kinds = [kind for _, kind in sites.asked]
    assert sorted(name for name, kind in sites.asked if kind == COUNTS) == sorted(sites.names)
    assert kinds[-len(sites.names) :] == [COUNTS] * len(sites.names)


def test_thresholds_and_results_are_those_of_the_rows(ended):
    from sklearn.metrics import average_precision_score, roc_auc_score

    sites, folder = ended
    rows = held_at_sites(sites, folder)
    written = json.loads((folder.path / "decisions.json").read_text())
    calibration = Calibration.from_dict(written["calibration"])
    scores, labels = rows["test"]
    assert [one["wanted"] for one in written["thresholds"]] == ["precision 0.4", "recall 0.7"]
    for one in written["thresholds"]:
        outcome = Threshold(one["score"], "", None).judge(scores, labels)
        assert one["on test data"] == vars(outcome)  # exactly: a threshold is the edge of a bin
    recall = Threshold(written["thresholds"][1]["score"], "", None).judge(*rows["validation"]).recall
    assert recall.value >= 0.7
    test = written["test"]
    assert (test["rows"], test["positives"]) == (len(labels), labels.sum())
    assert test["average_precision"] == pytest.approx(average_precision_score(labels, scores), abs=2e-3)
    assert test["auroc"] == pytest.approx(roc_auc_score(labels, scores), abs=1e-3)
    assert test["brier_score"] == pytest.approx(brier_score(fixed_bins().count(scores, labels), calibration), abs=1e-12)
    assert test["brier_score"] == pytest.approx(np.mean((calibration.apply(scores) - labels) ** 2), abs=1e-4)


def sent_by_site(folder):
    """The lines of the table of what sites sent."""
    text = (folder.path / "decisions.md").read_text().partition("What the sites sent")[2]
    return {line.split("|")[1].strip(): line for line in text.splitlines() if line.startswith("|")}


def test_people_see_what_it_does_and_what_each_site_sent(ended):
    sites, folder = ended
    assert "of 100 alerts about" in (folder.path / "decisions.md").read_text()
    sent = sent_by_site(folder)
    assert [name for name in sent if name in sites.names] == sites.names
    assert sent["tiny"].count("not counted") == 2
    assert "too few rows" in sent["tiny"]
    assert sent["north"].count("positive)") == 2
    for name in ("precision-recall", "reliability"):
        assert (folder.path / f"decision-{name}.png").read_bytes().startswith(b"\x89PNG")


def test_the_exported_model_gives_these_probabilities_and_alerts(ended):
    pytest.importorskip("onnxruntime")
    sites, folder = ended
    own = pd.read_csv(sites.folder / "north.csv")
    scored = Model(folder.path / "model").score(own).rows
    written = json.loads((folder.path / "decisions.json").read_text())
    alerts = [name for name in scored.columns if name.startswith("alert_")]
    assert alerts == ["alert_precision_0.4", "alert_recall_0.7"]
    for name, one in zip(alerts, written["thresholds"], strict=True):
        lowest = scored.loc[scored[name] == 1, "probability"].min()
        assert lowest >= one["probability"] - 1e-6
        assert scored.loc[scored[name] == 0, "probability"].max() <= lowest


def test_a_lying_site_and_a_silent_one_are_named_and_left_out(ended):
    _, folder = ended
    log = (folder.path / "log.txt").read_text()
    lie, silence = "its counts of test rows are negative", "no answer in time"
    assert f"the scores of site lying are not counted: {lie}" in log
    assert f"the scores of site silent are not counted: {silence}" in log
    sent = sent_by_site(folder)
    assert sent["lying"].count("not counted") == sent["silent"].count("not counted") == 2
    assert lie in sent["lying"]
    assert silence in sent["silent"]


def test_where_too_few_sites_count_the_run_is_done_and_says_why_there_are_no_thresholds(tmp_path, monkeypatch):
    tables = {"one": table(40), "two": table(40, seed=1)}
    for frame in tables.values():
        frame["ill"] = [0, 1] * 20
    sites = TableSites(tmp_path, tables, smallest_count={"one": 5, "two": 5})
    folder = sites.run(monkeypatch, **SETTINGS | {"rounds": 1, "evaluate_every": 1, "net": "linear"})
    assert folder.status == "done"
    assert (folder.path / "table.md").is_file()
    assert not (folder.path / "decisions.md").exists()
    said = (
        "no calibration and no thresholds: the validation rows that sites have counted are 0 positives and 0 negatives"
    )
    assert said in (folder.path / "log.txt").read_text()


def test_counts_of_one_label_only_are_refused():
    counts = fixed_bins().count(np.array([0.5, 1.5]), np.array([0, 0]))
    with pytest.raises(FedcsoError, match="test rows that sites have counted are 0 positives and 2 negatives"):
        as_rows([SiteCounts("one", {"test": counts})], "test")


def test_rows_made_of_counts_have_these_counts_again():
    rng = np.random.default_rng(0)
    counts = {
        name: fixed_bins().count(rng.normal(size=200) * 10 ** rng.normal(size=200), rng.integers(0, 2, 200))
        for name in ("one", "two")
    }
    held = as_rows([SiteCounts(name, {"test": own}) for name, own in counts.items()], "test")
    for name, own in counts.items():
        again = fixed_bins().count(*held.at(name))
        np.testing.assert_array_equal(again.negatives, own.negatives)
        np.testing.assert_array_equal(again.positives, own.positives)
