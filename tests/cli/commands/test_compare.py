"""`fedcso compare`: differences seed by seed, on the same data only."""

import json
import math
import statistics

import pytest
from scipy import stats

from fedcso.core.errors import UnknownName
from fedcso.reports.recorded import Record
from fedcso.reports.tables import Estimate
from fedcso.studies import compare
from tests.command_line import BAD_INPUT, FINE, LOGISTIC, QUADRATIC, call, read_csv, run, without_drawing

ONE = ["--algorithm", "FCSG"]


@pytest.fixture
def blank(tmp_path, monkeypatch):
    without_drawing(monkeypatch)
    return tmp_path


def last(folder, metric):
    """The last value of every run, by method and seed."""
    return {(row["algorithm"], row["seed"]): float(row[metric]) for row in read_csv(folder / "metrics.csv")}


def by_hand(values, others):
    """Mean and half-width of the 95 % interval of paired differences."""
    differences = [a - b for a, b in zip(values, others, strict=True)]
    half = stats.t.ppf(0.975, len(differences) - 1) * statistics.stdev(differences) / math.sqrt(len(differences))
    return statistics.mean(differences), half


def test_differences_of_two_runs_are_paired_by_seed(blank):
    seeds = ["0", "1", "2", "3"]
    first = run("run", *QUADRATIC, *ONE, "--seeds", "4", out=blank / "a")
    second = run("run", *QUADRATIC, "--algorithm", "SCAFFOLD", "--seeds", "4", out=blank / "b")
    outcome = call("compare", first, second, "--metric", "loss")
    assert outcome.code == FINE
    mean, half = by_hand(
        [last(second, "loss")["SCAFFOLD", s] for s in seeds], [last(first, "loss")["FCSG", s] for s in seeds]
    )
    assert str(Estimate(mean, half)) in outcome.out
    assert "loss: method − FCSG" in outcome.out


def row(algorithm, seed, loss, round=1):
    return {"algorithm": algorithm, "seed": seed, "round": round, "loss": loss}


def test_a_difference_is_between_the_last_evaluations():
    rows = [row("A", 0, 9.0, round=0), row("A", 0, 1.0), row("B", 0, 9.0, round=0), row("B", 0, 4.0)]
    (line,) = compare.differences(Record(rows), None, None)
    assert line["difference"].mean == 3.0


def test_only_seeds_that_both_have_count():
    rows = [row("A", 0, 1.0), row("A", 1, 2.0), row("A", 2, 50.0)]
    rows += [row("B", 0, 2.0), row("B", 1, 4.0), row("B", 7, -50.0)]
    (line,) = compare.differences(Record(rows), None, None)
    assert line["seeds"] == 2
    assert line["difference"].mean == 1.5


def test_methods_without_a_common_seed_have_no_difference():
    assert compare.differences(Record([row("A", 0, 1.0), row("B", 1, 2.0)]), None, None) == []


@pytest.mark.parametrize(
    ("losses", "verdict"), [([2.0, 2.1, 1.9], "clear"), ([2.0, -2.1, 0.2], "within noise"), ([2.0], "one seed")]
)
def test_the_verdict_is_whether_the_interval_holds_zero(losses, verdict):
    rows = [row("A", seed, 0.0) for seed in range(len(losses))]
    rows += [row("B", seed, loss) for seed, loss in enumerate(losses)]
    (line,) = compare.differences(Record(rows), None, None)
    assert line[""] == verdict


def test_the_baseline_can_be_chosen():
    rows = [row("A", 0, 1.0), row("B", 0, 3.0), row("C", 0, 7.0)]
    lines = compare.differences(Record(rows), None, "B")
    assert [line["difference"].mean for line in lines] == [-2.0, 4.0]
    with pytest.raises(UnknownName, match="baseline 'D'"):
        compare.differences(Record(rows), None, "D")


def test_the_same_method_in_two_folders_is_told_apart(blank):
    folders = [run("run", *QUADRATIC, *ONE, "--name", name, out=blank / name) for name in ("a", "b")]
    outcome = call("compare", *folders)
    assert outcome.code == FINE
    for folder in folders:
        assert f"FCSG [{folder.name}]" in outcome.out
    assert "0.0000 ± 0.0000" in outcome.out


def test_folders_of_the_same_name_are_told_apart(blank):
    first = run("run", *QUADRATIC, *ONE, out=blank / "a")
    second = run("run", *QUADRATIC, *ONE, "--learning-rate", "0.1", out=blank / "b")
    second = second.rename(second.parent / first.name)
    outcome = call("compare", first, second)
    assert outcome.code == FINE
    assert len([line for line in outcome.out.splitlines() if "│ FCSG" in line]) == 3  # two methods, a difference


# --------------------------------------------------------------------------------------- the data


def test_runs_on_different_data_are_refused(blank):
    folders = [run("run", *LOGISTIC, *ONE, "--data-seed", seed, out=blank / seed) for seed in ("0", "1")]
    outcome = call("compare", *folders)
    assert outcome.code == BAD_INPUT
    assert "the data of these runs differ" in outcome.err
    assert all(str(folder) in outcome.err for folder in folders)
    assert call("compare", *folders, "--allow-different-data").code == FINE


def test_runs_with_another_split_are_refused(blank):
    folders = [run("run", *QUADRATIC, *ONE, "--clients", clients, out=blank / clients) for clients in ("2", "3")]
    assert call("compare", *folders).code == BAD_INPUT


def test_runs_that_trained_on_other_clients_but_were_tested_on_the_same_data_are_compared(blank):
    tiny = ["run", "cross_entropy", "--rounds", "1", "--local-steps", "1", "--seeds", "2", "--net", "linear"]
    folders = [run(*tiny, "--clients", count, out=blank / f"{count}") for count in (2, 3)]
    assert call("compare", *folders).code == FINE
    for folder in folders:  # written by an earlier version, which did not tell the test data
        about = json.loads((folder / "env.json").read_text())
        del about["data"]["test"]
        (folder / "env.json").write_text(json.dumps(about))
    outcome = call("compare", *folders)
    assert outcome.code == BAD_INPUT
    assert "differ, and not all of them tell their test data" in outcome.err


def test_runs_with_other_settings_on_the_same_data_are_compared(blank):
    folders = [run("run", *LOGISTIC, *ONE, "--inner-batch", m, out=blank / m) for m in ("1", "5")]
    assert call("compare", *folders).code == FINE


def test_runs_that_were_measured_otherwise_are_compared_by_what_they_share(blank):
    folders = [run("run", *LOGISTIC, *ONE, out=blank / "a"), run("run", *QUADRATIC, *ONE, out=blank / "b")]
    outcome = call("compare", *folders, "--allow-different-data")  # only the first has an accuracy
    assert outcome.code == FINE
    assert "loss: method" in outcome.out
