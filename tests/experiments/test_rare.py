"""The experiment on rare positives in miniature, and its statements on results made by hand."""

import pytest
import torch

from fedcso.core.judge import ByClient
from fedcso.experiments import rare_report
from fedcso.experiments.rare_positives import METHODS, OTHERS, OURS
from fedcso.experiments.rare_report import AS_THEY_ARE, AT_TRAINING_SHARE
from fedcso.experiments.rare_settings import Source, settings
from fedcso.experiments.rare_tasks import for_run, measure_test, pose, thin
from tests.command_line import (
    BAD_INPUT,
    FINE,
    INTERRUPTED,
    call,
    contents,
    interrupt_after,
    read_csv,
    run,
    without_drawing,
)
from tests.experiments.miniature import shrink

COMMON = {"clients": 2, "rounds": 2, "rates": [0.1, 1.0], "seeds": [0, 1]}
TINY = {
    "sources": {
        "breast_cancer": Source(shares=[0.05], evaluations=2, **COMMON),
        "digits": Source(shares=[0.1], tuned_once=True, evaluations=1, **COMMON),
    },
    "local_steps": 1,
    "outer_batch": 2,
    "inner_batch": 4,
}


@pytest.fixture(scope="module", autouse=True)
def tiny():
    """Few of everything, and nothing drawn."""
    with pytest.MonkeyPatch.context() as patch:
        without_drawing(patch)
        shrink(patch, "rare", **TINY)
        yield


@pytest.fixture(scope="module")
def finished(tiny, tmp_path_factory):
    return run("reproduce", "rare", out=tmp_path_factory.mktemp("runs"))


def test_it_leaves_figures_tables_statements_and_a_report(finished):
    for name in ("rare.png", "rare-as-they-are.png", "rare-curves.pdf", "report.html", "table.csv", "trials.csv"):
        assert (finished / name).is_file()
    document = (finished / "reproduction.md").read_text()
    assert document.startswith("# Rare positives: average precision against their share\n")
    assert "`fedcso reproduce rare`" in document
    lines = read_csv(finished / "table.csv")
    assert [line["method"] for line in lines] == [*METHODS] * 2
    assert {line["positives"] for line in lines} == {"5 %", "10 %"}


def test_every_method_has_the_same_rates_and_validation_data_choose(finished):
    outcomes, tried = read_csv(finished / "outcomes.csv"), read_csv(finished / "trials.csv")
    assert len(outcomes) == 2 * 2 * len(METHODS)
    for row in outcomes:
        once = row["data"] == "digits"  # the first seed chooses for all
        where = {name: row[name] for name in ("data", "method", "share")}
        where["seed"] = "0" if once else row["seed"]
        mine = [trial for trial in tried if where.items() <= trial.items()]
        assert [trial["rate"] for trial in mine] == ["0.1", "1.0"]
        best = max(mine, key=lambda trial: float(trial["validation"]))
        assert best["rate"] == row["learning rate"]
        assert where["seed"] != row["seed"] or best["validation"] == row["validation"]


def test_the_chosen_iterate_is_the_best_on_validation_data(finished):
    curves = read_csv(finished / "curves.csv")
    for row in read_csv(finished / "outcomes.csv"):
        names = ("data", "share", "method", "seed")
        mine = [point for point in curves if all(point[name] == row[name] for name in names)]
        values = [float(point["validation_average_precision_at_share"]) for point in mine]
        assert float(row["validation"]) == max(values)
        assert row["chosen round"] == mine[values.index(max(values))]["round"]


def test_every_method_sees_as_many_examples(finished):
    for row in read_csv(finished / "outcomes.csv"):
        outer, inner = int(row["outer_samples"]), int(row["inner_samples"])
        assert (outer if row["method"] in OTHERS else outer + inner) == 2 * 2 * 6


def test_interrupted_and_resumed_it_ends_the_same(finished, tmp_path):
    with pytest.MonkeyPatch.context() as patch:
        interrupt_after(patch, rounds=1, unit="CODA+ on digits 10% seed 0")
        folder = run("reproduce", "rare", out=tmp_path, code=INTERRUPTED)
    assert call("resume", folder).code == FINE
    found, expected = contents(folder), contents(finished)
    for one in (found, expected):
        del one["reproduction.md"]  # names the seconds of computing
    assert found == expected


def test_a_part_of_it_can_be_run_alone(tmp_path):
    folder = run("reproduce", "rare", "--data", "breast_cancer", out=tmp_path)
    assert {row["data"] for row in read_csv(folder / "outcomes.csv")} == {"breast_cancer"}
    assert "`fedcso reproduce rare --data breast_cancer`" in (folder / "reproduction.md").read_text()


@pytest.mark.parametrize(
    ("experiment", "data", "says"),
    [
        ("rare", "digit", "unknown data set of the experiment 'digit'; did you mean digits?"),
        ("figure1", "digits", "data = 'digits' must be left out: this experiment has no choice of data sets"),
    ],
)
def test_data_that_an_experiment_does_not_have_are_refused(experiment, data, says, tmp_path):
    outcome = call("reproduce", experiment, "--data", data, "--out", tmp_path)
    assert outcome.code == BAD_INPUT
    assert says in outcome.err
    assert not list(tmp_path.iterdir())


# ----------------------------------------------------------------------------------------- the data


@pytest.mark.parametrize("share", [0.02, 0.1])
def test_training_positives_have_the_share_and_held_out_ones_all_remain(share):
    thinned = thin("digits", share, 4, False, 0, seed=3)
    labels = torch.cat([part.labels for part in thinned.sites.train])
    assert float(labels.double().mean()) == thinned.share == pytest.approx(share, abs=1 / len(labels))
    for part in (thinned.sites.validation, thinned.sites.test):
        assert torch.cat([site.labels for site in part]).double().mean() > 0.4


def test_a_share_above_the_datas_own_takes_all_positives():
    thinned = thin("breast_cancer", 0.9, 4, False, 0, seed=0)
    assert 0.3 < thinned.share < 0.45


def test_seeds_decide_which_rows_are_tested():
    first, second = (thin("breast_cancer", 0.1, 2, False, 0, seed=seed).sites.test[0].inputs for seed in (0, 1))
    assert not torch.equal(first[:5], second[:5])


@pytest.mark.parametrize("name", METHODS)
def test_a_run_sees_training_and_validation_data_and_no_test_data(name):
    thinned = thin("digits", 0.05, 2, False, 0, seed=0)
    task = pose(METHODS[name], thinned)
    during = for_run(task, thinned)
    assert isinstance(task.test, ByClient)
    assert during.test is thinned.train
    assert during.validation is thinned.validation
    x = task.problem.init(torch.Generator().manual_seed(0))
    assert measure_test(task, x).keys() == {"average_precision_at_share", "average_precision"}


def test_weighted_classes_have_equal_weight():
    thinned = thin("digits", 0.05, 2, False, 0, seed=0)
    problem = pose(METHODS["FedAvg, weighted"], thinned).problem
    assert problem.positive_weight == pytest.approx((1 - thinned.share) / thinned.share)
    assert pose(METHODS["FedAvg"], thinned).problem.positive_weight == 1.0


# ------------------------------------------------------------------------------- results made by hand


def outcomes(ours, share=0.01, noise=(-0.1, 0.0, 0.1), ours_valid=0.9):
    """All methods have the same noise of a seed; the family has `ours`, the others 0.5."""
    return [
        {"data": "made", "share": share, "method": method, "seed": seed}
        | {"validation": (ours_valid if method == "FCSG" else 0.4) if method in OURS else 0.5}
        | dict.fromkeys([AT_TRAINING_SHARE, AS_THEY_ARE], (ours if method in OURS else 0.5) + part)
        for method in METHODS
        for seed, part in enumerate(noise)
    ]


def test_ahead_is_ahead_seed_by_seed():
    (found,) = rare_report.check(outcomes(0.6))
    assert found.holds
    assert "FCSG minus FedAvg (each the best of its side on validation data), seed by seed: 0.1000 ± 0.0000" in str(
        found
    )


@pytest.mark.parametrize("ours", [0.5, 0.4])
def test_level_or_behind_is_not_ahead(ours):
    (found,) = rare_report.check(outcomes(ours))
    assert not found.holds


def test_an_interval_that_reaches_zero_is_not_ahead():
    rows = outcomes(0.6)
    for row in rows:
        if row["method"] in OURS:
            row[AT_TRAINING_SHARE] += (-0.3, 0.0, 0.3)[row["seed"]]
    (found,) = rare_report.check(rows)
    assert not found.holds


def test_nothing_is_stated_about_frequent_positives():
    assert rare_report.check(outcomes(0.6, share=0.17)) == []


def test_quick_needs_no_download_and_the_whole_has_what_was_asked():
    quick, whole = settings(True), settings(False)
    assert quick.sources.keys() == {"digits", "breast_cancer"}
    assert sorted(whole.sources["mnist"].shares) == [0.005, 0.01, 0.02, 0.05, 0.17]
    assert sorted(whole.sources["cifar10"].shares) == [0.01, 0.02, 0.17]
    assert whole.sources["cifar10"].rounds * whole.local_steps == 600
    for source in whole.sources.values():
        assert len(source.seeds) >= 3
        assert len(source.rates) >= 2
    assert not any(whole.sources[name].tuned_once for name in ("flchain", "diamonds"))  # their seeds test other rows
