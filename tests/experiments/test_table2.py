"""Table 2 in miniature, and its statements on results made by hand."""

import json
import re

import pytest

from fedcso.experiments import rare_positives, table2
from fedcso.experiments.rare_positives import BEYOND, JOINT, LOG, OURS, TABLE2_METHODS
from tests.command_line import FINE, INTERRUPTED, call, contents, interrupt_after, read_csv, run, without_drawing
from tests.experiments.miniature import shrink

TINY = {
    "data": ["digits"],
    "clients": 2,
    "local_steps": 1,
    "outer_batch": 2,
    "inner_batch": 4,
    "rounds": {"digits": 2},
    "trial_rounds": {"digits": 1},
    "seeds": [0, 1],
    "trial_seeds": {"digits": [7, 8]},
    "rates": [0.1, 0.01],
    "evaluations": 2,
}


@pytest.fixture(scope="module", autouse=True)
def tiny():
    """Few of everything, and nothing drawn."""
    with pytest.MonkeyPatch.context() as patch:
        without_drawing(patch)
        shrink(patch, "table2", **TINY)
        yield


@pytest.fixture(scope="module")
def finished(tiny, tmp_path_factory):
    return run("reproduce", "table2", out=tmp_path_factory.mktemp("runs"))


def test_it_leaves_figures_tables_statements_and_a_report(finished):
    for name in ("table2.png", "table2.pdf", "report.html", "table.tex", "trials.csv"):
        assert (finished / name).is_file()
    document = (finished / "reproduction.md").read_text()
    assert document.startswith("# Table 2: average precision with rare positives\n")
    assert len(re.findall(r"^- (HOLDS|DOES NOT HOLD): “.+” Measured: ", document, re.MULTILINE)) == 3
    assert "; 2 trials of 1 steps on digits for each method, chosen by validation" in document
    assert "`fedcso reproduce table2`" in document


def test_every_method_is_measured_for_every_seed(finished):
    metrics = read_csv(finished / "metrics.csv")
    runs = {(row["algorithm"], row["seed"]) for row in metrics}
    assert runs == {(f"{method} on digits", seed) for method in TABLE2_METHODS for seed in "01"}
    lines = read_csv(finished / "table.csv")
    assert [(line["method"], line["seeds"], line["rounds"]) for line in lines] == [
        (m, "2", "2") for m in TABLE2_METHODS
    ]


def test_every_method_sees_as_many_examples(finished):
    """b positives and m others, or b + m."""
    for line in read_csv(finished / "table.csv"):
        outer, inner = int(line["samples ξ"]), int(line["samples η"])
        ranks = line["method"] in (*OURS, *BEYOND)
        assert (outer + inner if ranks else outer) == int(line["rounds"]) * 6 * 2


def test_every_method_was_tried_as_often_and_the_best_by_validation_is_reported(finished):
    tried = read_csv(finished / "trials.csv")
    assert [row["algorithm"] for row in tried] == [method for method in TABLE2_METHODS for _ in range(2)]
    for method in TABLE2_METHODS:
        mine = [row for row in tried if row["algorithm"] == method]
        best = min(mine, key=lambda row: float(row["minus_validation_ap"]))
        (line,) = [row for row in read_csv(finished / "table.csv") if row["method"] == method]
        assert f"learning rate {float(best['learning_rate']):.3g}, clip {float(best['clip']):.3g}" in line["settings"]


def test_a_trial_is_scored_by_the_mean_over_its_seeds(finished):
    for row in read_csv(finished / "trials.csv")[::2]:  # the first learning rate of each method
        name = f"trial 0 {row['algorithm']} on digits 0, seed"
        found = [path for path in (finished / "outcomes").glob("*/*.json") if f'"{name} ' in path.read_text()]
        scores = [
            json.loads(path.read_text())["traces"][0]["rows"][-1]["validation_average_precision"] for path in found
        ]
        assert len(scores) == 2
        assert float(row["minus_validation_ap"]) == pytest.approx(-sum(scores) / 2)


def test_interrupted_and_resumed_it_ends_the_same(finished, tmp_path):
    with pytest.MonkeyPatch.context() as patch:
        interrupt_after(patch, rounds=1, unit="CODA+ on digits")
        folder = run("reproduce", "table2", out=tmp_path, code=INTERRUPTED)
    assert call("resume", folder).code == FINE
    (folder / "reproduction.md").unlink()  # names the seconds of computing
    expected = contents(finished)
    expected.pop("reproduction.md")
    assert contents(folder) == expected


def test_quick_is_of_embedded_data_and_tries_nothing():
    quick, whole = table2.settings(True), table2.settings(False)
    assert quick.data == ["digits"]
    assert len(quick.rates) == 1
    assert whole.data == ["mnist", "cifar10"]
    assert not {seed for seeds in whole.trial_seeds.values() for seed in seeds} & set(whole.seeds)
    assert len(whole.seeds) >= 3
    assert whole.rounds["mnist"] * whole.local_steps >= 500
    assert whole.rounds["cifar10"] * whole.local_steps >= 2000
    for data in whole.data:
        assert 4 * whole.trial_rounds[data] >= whole.rounds[data]


def test_the_report_says_which_versions_of_pictures_all_methods_saw():
    said = rare_positives.describe(table2.settings(quick=False), 3).data
    assert "images of cifar10 are randomly mirrored and moved by up to 2 pixels" in said
    assert "pictures of mnist" not in said


def test_without_a_choice_nothing_is_tried(tmp_path, monkeypatch):
    shrink(monkeypatch, "table2", rates=[0.3])
    folder = run("reproduce", "table2", "--quick", out=tmp_path)
    document = (folder / "reproduction.md").read_text()
    assert "quick version, which is too short" in document
    assert "Not tuned: learning rate 0.3" in document
    assert not list((folder / "checkpoints").glob("trial*"))


# ------------------------------------------------------------------------------- results made by hand

NOISE = [-0.01, 0.0, 0.01]
"""Of a seed, the same for all methods: seed by seed nothing is left of it."""
BEHIND = {"FedAvg": 0.6, "FedAvg, weighted": 0.65, "FedAvg, balanced": 0.65, "CODA+": 0.7}
AHEAD = {"FCSG": 0.8, "FCSG-M": 0.85, "Acc-FCSG-M": 0.9, LOG: 0.75, JOINT: 0.75} | BEHIND


def statements(changes=None, noise=NOISE):
    """Return the paper's statement, and those about log precision and the joint objective."""
    levels = AHEAD | (changes or {})
    precision = {method: [level + part for part in noise] for method, level in levels.items()}
    return rare_positives.check({"mnist": precision})


def test_ahead_is_ahead():
    found, log, joint = statements()
    assert found.holds
    assert log.holds
    assert found.measured.startswith("Acc-FCSG-M 0.9000; FCSG-M 0.8500; FCSG 0.8000; FCSG-M, log precision 0.75")
    assert joint.holds
    assert "minus CODA+, seed by seed: 0.0500" in joint.measured


def test_one_of_the_family_behind_is_enough_to_fail():
    found, _, joint = statements({"FCSG": 0.69})
    assert not found.holds
    assert joint.holds


def test_the_objectives_beyond_the_papers_are_compared_with_the_best_of_the_others():
    found, log, joint = statements({"FedAvg, balanced": 0.76, LOG: 0.8})
    assert found.holds
    assert log.holds
    assert not joint.holds


def test_so_is_an_interval_that_reaches_zero():
    precision = {method: [level] * 3 for method, level in AHEAD.items()}
    precision["Acc-FCSG-M"] = [0.5, 0.9, 1.3]
    found, *_ = rare_positives.check({"mnist": precision})
    assert not found.holds


def test_the_papers_numbers_are_beside_ours():
    for data in ("mnist", "cifar10"):
        assert rare_positives.PAPER[data].keys() == TABLE2_METHODS.keys() - {
            *BEYOND,
            "FedAvg, weighted",
            "FedAvg, balanced",
        }
