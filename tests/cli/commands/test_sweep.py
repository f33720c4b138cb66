"""`fedcso sweep`: validation data decide, test data are touched once, and nothing that was tried is lost."""

import math
import statistics
from collections import Counter

import pytest
import yaml

from fedcso.runs import search
from fedcso.runs.search import Range
from tests.command_line import (
    BAD_INPUT,
    BROKE_OFF,
    FINE,
    INTERRUPTED,
    LOGISTIC,
    QUADRATIC,
    assert_same_contents,
    call,
    contents,
    interrupt_after,
    read_csv,
    run,
    without_drawing,
)

SEEDS = ["--tuning-seeds", "[7, 8]"]
GRID = ["--grid", "learning_rate=0.1,0.03,0.01", "--grid", "momentum=0.5,0.9"]
TRIED = 6
WATCHED = """
import torch
from fedcso import Judge, Metric, Task
from fedcso.problems import NestedQuadratic

class Watched(NestedQuadratic):
    exact = None

def f1(x, data):
    '''On validation data the nearer to 1 the better, on test data the farther.'''
    with open("evaluated.txt", "a") as file:
        print(data, *x.shape, file=file)
    return {"f1": (x - 1).square().sum(-1) * (-1 if data == "validation" else 1), "other": x.sum(-1)}

def task(validation: bool = True, declared: bool = True, higher: bool = True):
    metrics = [Metric("f1", "F1", higher_is_better=higher), Metric("other")] if declared else []
    judge = Judge(f1, metrics, broadcasts=True)
    clients = list(torch.ones(2, 1, dtype=torch.float64))
    return Task(Watched(1), clients, test="test", validation="validation" if validation else None, judge=judge)
"""


@pytest.fixture
def blank(tmp_path, monkeypatch):
    without_drawing(monkeypatch)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def chosen_of(folder):
    return yaml.safe_load((folder / "chosen.yaml").read_text())["algorithm"]


# -------------------------------------------------------------------------------------------- grid


def test_the_whole_grid_is_kept_best_first_and_the_best_is_chosen(blank):
    folder = run("sweep", *QUADRATIC, "--algorithm", "FCSG-M", *GRID, *SEEDS, out=blank)
    table = read_csv(folder / "sweep.csv")
    points = {(row["learning_rate"], row["momentum"]) for row in table}
    assert points == {(rate, momentum) for rate in ("0.1", "0.03", "0.01") for momentum in ("0.5", "0.9")}
    losses = [float(row["loss F(x)"]) for row in table]
    assert losses == sorted(losses)
    assert len(set(losses)) == TRIED
    best = table[0]
    assert chosen_of(folder) == [f"FCSG-M(learning_rate={best['learning_rate']}, momentum={best['momentum']})"]


def test_both_levels_of_a_method_around_another_are_tuned(blank):
    grid = ["--grid", "momentum=0.5,0.9", "server_rate=0.1,0.3"]
    folder = run("sweep", *QUADRATIC, "--algorithm", "FedAvgM(base=FCSG-M)", *grid, *SEEDS, out=blank)
    table = read_csv(folder / "sweep.csv")
    points = {(row["momentum"], row["server_rate"]) for row in table}
    assert points == {(momentum, rate) for momentum in ("0.5", "0.9") for rate in ("0.1", "0.3")}
    assert len({row["loss F(x)"] for row in table}) == len(points)
    best = table[0]
    inside = f"FCSG-M(learning_rate=0.01, momentum={best['momentum']})"
    assert chosen_of(folder) == [f"FedAvgM(base={inside}, server_rate={best['server_rate']}, server_momentum=0.9)"]


def test_a_score_is_what_a_run_of_that_setting_ends_with(blank):
    folder = run("sweep", *QUADRATIC, "--algorithm", "FCSG-M", *GRID, *SEEDS, out=blank / "sweep")
    for row in read_csv(folder / "sweep.csv")[:2]:
        spec = f"FCSG-M(learning_rate={row['learning_rate']}, momentum={row['momentum']})"
        single = run("run", *QUADRATIC, "--algorithm", spec, "--seeds", "7,8", "--name", "x", out=blank / spec)
        losses = [float(r["loss"]) for r in read_csv(single / "metrics.csv") if r["round"] == "3"]
        assert float(row["loss F(x)"]) == pytest.approx(statistics.mean(losses))


def test_where_higher_is_better_the_highest_is_chosen(blank):
    folder = run("sweep", *LOGISTIC, "--algorithm", "FCSG", "--grid", "learning_rate=5.0,0.5,0.001", *SEEDS, out=blank)
    accuracies = [float(row["validation accuracy"]) for row in read_csv(folder / "sweep.csv")]
    assert accuracies == sorted(accuracies, reverse=True)
    assert accuracies[0] > accuracies[-1]


def test_every_method_chooses_for_itself_among_the_values_it_has(blank):
    folder = run("sweep", *QUADRATIC, "--algorithm", "FCSG", "FCSG-M", *GRID, *SEEDS, out=blank)
    table = read_csv(folder / "sweep.csv")
    assert [row["algorithm"] for row in table] == ["FCSG"] * 3 + ["FCSG-M"] * TRIED
    assert [spec.partition("(")[0] for spec in chosen_of(folder)] == ["FCSG", "FCSG-M"]


def test_a_setting_that_diverges_is_kept_and_not_chosen(blank):
    folder = run("sweep", *QUADRATIC, "--algorithm", "FCSG", "--grid", "learning_rate=1e200,0.1", *SEEDS, out=blank)
    assert [row["loss F(x)"] for row in read_csv(folder / "sweep.csv")][1] == "broke off"
    assert chosen_of(folder) == ["FCSG(learning_rate=0.1)"]


def test_if_all_settings_diverge_it_is_told(blank):
    outcome = call("sweep", *QUADRATIC, "--algorithm", "FCSG", "--grid", "learning_rate=1e200,1e201", *SEEDS)
    assert outcome.code == BROKE_OFF
    assert "Traceback" not in outcome.err


def test_whole_numbers_and_schedules_may_be_tried(blank):
    grid = ["--grid", "period=2,3", "--grid", "learning_rate=cosine(0.1, 6),0.1"]
    one = [*QUADRATIC, "--clients", "1", "--local-steps", "1", "--algorithm", "BSpiderBoost"]
    folder = run("sweep", *one, *grid, *SEEDS, out=blank)
    assert len(read_csv(folder / "sweep.csv")) == 4


def test_settings_that_are_words_may_be_tried(blank):
    grid = ["--grid", "send_u=full,int8,every(2)", "learning_rate=0.1,0.03"]
    folder = run("sweep", *QUADRATIC, "--algorithm", "FCSG-M", *grid, *SEEDS, out=blank)
    table = read_csv(folder / "sweep.csv")
    assert {(row["send_u"], row["learning_rate"]) for row in table} == {
        (way, rate) for way in ("full", "int8", "every(2)") for rate in ("0.1", "0.03")
    }
    assert len({row["loss F(x)"] for row in table}) > 2
    again = run("run", *QUADRATIC, "--config", folder / "chosen.yaml", out=blank / "run")
    losses = [[row["loss"] for row in read_csv(path / "metrics.csv")] for path in (folder, again)]
    assert losses[0] == losses[1]


OWN = """
from dataclasses import dataclass
from fedcso.algorithms import FCSG

@dataclass(frozen=True)
class Mine(FCSG):
    friction: float = 0.5
    mode: str = "whole"

    def step(self, state, oracle, batch, t):
        x = state.shared["x"]
        factor = {"whole": 1.0, "half": 0.5}[self.mode]
        return type(state)({"x": oracle.move(x, oracle.grad(x, batch), factor * self.learning_rate * self.friction)})
"""


@pytest.fixture
def own(blank):
    (blank / "mine.py").write_text(OWN)
    return ["--algorithm", "mine.py:Mine", "FCSG"]


def test_own_methods_are_tried_with_others_their_own_settings_too(blank, own):
    grid = ["--grid", "learning_rate=0.1,0.03;friction=0.25,1.0"]
    folder = run("sweep", *QUADRATIC, *own, *grid, *SEEDS, out=blank / "runs")
    table = read_csv(folder / "sweep.csv")
    assert [row["algorithm"] for row in table] == ["mine.py:Mine"] * 4 + ["FCSG"] * 2
    tried = {(row["learning_rate"], row["friction"]): row["loss F(x)"] for row in table}
    for rate in ("0.1", "0.03"):  # without friction it is FCSG
        assert float(tried[rate, "1"]) == pytest.approx(float(tried[rate, ""]), rel=1e-12)
    assert len(list((folder / "checkpoints").glob("tune_mine*"))) == 1  # all of them were played together


def test_words_of_an_own_method_are_tried_as_well(blank, own):
    folder = run("sweep", *QUADRATIC, *own[:2], "--grid", "mode=whole,half", *SEEDS, out=blank / "runs")
    losses = {row["mode"]: float(row["loss F(x)"]) for row in read_csv(folder / "sweep.csv")}
    assert losses["whole"] < losses["half"]


def test_an_own_setting_is_searched(blank, own, optuna):
    search = ["--search", "friction=0.1:1.0", "--trials", "2"]
    folder = run("sweep", *QUADRATIC, *own[:2], *search, *SEEDS, out=blank / "runs")
    assert all(0.1 <= float(row["friction"]) <= 1 for row in read_csv(folder / "sweep.csv"))
    assert all(trial.params.keys() == {"friction"} for trial in trials_of(optuna, folder / "optuna.db", own[1]))


RATES = ["--algorithm", "FCSG", "--grid", "learning_rate=0.1,0.05,0.01", "--rounds", "2", "--seeds", "3"]


@pytest.fixture
def watched(blank):
    (blank / "watched.py").write_text(WATCHED)
    return ["sweep", "watched.py:task", *RATES, *SEEDS]


def test_test_data_are_used_for_the_chosen_setting_alone(blank, watched):
    folder = run(*watched, out=blank / "runs")
    uses = [line.split() for line in (blank / "evaluated.txt").read_text().splitlines()]
    first_test = [which for which, *_ in uses].index("test")
    tuning, final = Counter(), Counter()
    for place, (which, *shape) in enumerate(uses):
        (tuning if place < first_test else final)[which] += int(shape[0]) if len(shape) > 1 else 1
    evaluations, random_iterate, seeds = 1 + 2, 1, 3
    assert tuning == {"validation": 3 * 2 * (evaluations + random_iterate)}
    assert final == dict.fromkeys(["test", "validation"], seeds * (evaluations + random_iterate))
    assert {row["seed"] for row in read_csv(folder / "metrics.csv")} == {"0", "1", "2"}


@pytest.mark.parametrize("higher", [True, False])
def test_a_judges_own_metric_chooses_in_the_direction_it_declares(blank, watched, higher):
    """The training loss would always choose the largest of these rates, which is also the best by F1."""
    folder = run(*watched, "--higher", str(higher).lower(), out=blank / "runs")
    scores = [float(row["validation F1"]) for row in read_csv(folder / "sweep.csv")]
    assert scores == sorted(scores, reverse=higher)
    assert len(set(scores)) == 3
    assert chosen_of(folder) == [f"FCSG(learning_rate={0.1 if higher else 0.01})"]


def test_a_metric_is_asked_for_by_its_own_name(blank, watched):
    for metric, column in {
        "f1": "validation F1",
        "validation_f1": "validation F1",
        "train_loss": "training loss",
    }.items():
        folder = run(*watched, "--metric", metric, out=blank / metric)
        assert column in read_csv(folder / "sweep.csv")[0]


@pytest.mark.parametrize("metric", ["other", "loss", "f2"])
def test_a_metric_that_can_not_decide_is_refused(watched, metric):
    outcome = call(*watched, "--metric", metric)
    assert outcome.code == BAD_INPUT
    assert f"unknown metric {metric!r}" in outcome.err
    assert "(known: f1, train_loss, validation_f1)" in outcome.err


@pytest.mark.parametrize(
    ("option", "lacking"), [("validation", "validation data"), ("declared", "a judge that declares")]
)
def test_without_something_to_choose_by_it_is_refused(watched, option, lacking):
    """The training loss does not stand in for validation."""
    outcome = call(*watched, f"--{option}", "false")
    assert outcome.code == BAD_INPUT
    assert f"has no {lacking}" in outcome.err


def test_the_chosen_settings_can_be_run(blank):
    folder = run("sweep", *QUADRATIC, "--algorithm", "FCSG-M", *GRID, *SEEDS, out=blank / "sweep")
    again = run("run", *QUADRATIC, "--config", folder / "chosen.yaml", out=blank / "run")
    losses = [[row["loss"] for row in read_csv(path / "metrics.csv")] for path in (folder, again)]
    assert losses[0] == losses[1]


@pytest.mark.parametrize("unit", ["tune FCSG 0", "FCSG("])
def test_an_interrupted_grid_ends_the_same(blank, monkeypatch, unit):
    command = ["sweep", *QUADRATIC, "--algorithm", "FCSG", "FCSG-M", *GRID, *SEEDS]
    expected = run(*command, out=blank / "runs")
    expected = expected.rename(blank / "expected")
    with monkeypatch.context() as patch:
        interrupt_after(patch, rounds=2, unit=unit)
        folder = run(*command, out=blank / "runs", code=INTERRUPTED)
    assert call("resume", folder).code == FINE
    assert_same_contents(folder, expected)


def test_giving_an_axis_twice_loses_no_value(blank):
    grid = ["--grid", "learning_rate=0.1,0.03", "--grid", "learning_rate=0.01"]
    outcome = call("sweep", *QUADRATIC, "--algorithm", "FCSG", *grid, *SEEDS, "--out", blank / "runs")
    if outcome.code == FINE:
        (folder,) = (blank / "runs").iterdir()
        assert {row["learning_rate"] for row in read_csv(folder / "sweep.csv")} == {"0.1", "0.03", "0.01"}
    else:
        assert "learning_rate" in outcome.err


# ------------------------------------------------------------------------------------------ search

TRIALS = 5
RANGE = {"learning_rate": Range(0.001, 0.1)}
SEARCH = ["--search", "learning_rate=0.001:0.1", "--trials", str(TRIALS), *SEEDS]


@pytest.fixture
def optuna():
    return pytest.importorskip("optuna", reason="a search needs Optuna, the extra `sweep`")


def trials_of(optuna, database, name="FCSG"):
    return optuna.load_study(study_name=name, storage=f"sqlite:///{database}").get_trials(deepcopy=False)


def test_a_search_tries_as_often_as_it_was_told_within_its_range(blank, optuna):
    folder = run("sweep", *QUADRATIC, "--algorithm", "FCSG", *SEARCH, out=blank)
    table = read_csv(folder / "sweep.csv")
    assert len(table) == TRIALS
    assert all(0.001 <= float(row["learning_rate"]) <= 0.1 for row in table)
    losses = [float(row["loss F(x)"]) for row in table]
    assert losses == sorted(losses)
    best = max(trials_of(optuna, folder / "optuna.db"), key=lambda trial: trial.value)
    assert chosen_of(folder) == [f"FCSG(learning_rate={best.params['learning_rate']!r})"]


def test_every_method_has_a_search_of_its_own(blank, optuna):
    ranges = ["--search", "learning_rate=0.001:0.1", "momentum=0.1:1.0", "--trials", "2", *SEEDS]
    folder = run("sweep", *QUADRATIC, "--algorithm", "FCSG", "FCSG-M", *ranges, out=blank)
    assert [row["algorithm"] for row in read_csv(folder / "sweep.csv")] == ["FCSG"] * 2 + ["FCSG-M"] * 2
    for name, parameters in {"FCSG": {"learning_rate"}, "FCSG-M": {"learning_rate", "momentum"}}.items():
        assert all(t.params.keys() == parameters for t in trials_of(optuna, folder / "optuna.db", name))


@pytest.mark.parametrize("unit", ["trial 0", "trial 3"])
def test_an_interrupted_search_loses_and_doubles_no_trial(blank, monkeypatch, optuna, unit):
    with monkeypatch.context() as patch:
        interrupt_after(patch, rounds=2, unit=unit)
        folder = run("sweep", *QUADRATIC, "--algorithm", "FCSG", *SEARCH, out=blank, code=INTERRUPTED)
    assert call("resume", folder).code == FINE
    trials = trials_of(optuna, folder / "optuna.db")
    assert [trial.number for trial in trials] == list(range(TRIALS))
    assert all(trial.state.is_finished() for trial in trials)
    assert len(read_csv(folder / "sweep.csv")) == TRIALS
    assert len({trial.params["learning_rate"] for trial in trials}) == TRIALS


def test_an_interrupted_search_ends_the_same(blank, monkeypatch, optuna):
    command = ["sweep", *QUADRATIC, "--algorithm", "FCSG", *SEARCH]
    expected = run(*command, out=blank / "runs").rename(blank / "expected")
    with monkeypatch.context() as patch:
        interrupt_after(patch, rounds=2, unit="trial 2")
        folder = run(*command, out=blank / "runs", code=INTERRUPTED)
    assert call("resume", folder).code == FINE
    for name in ("sweep.csv", "chosen.yaml", "metrics.csv"):
        assert contents(folder)[name] == contents(expected)[name], name


def test_a_search_in_which_all_diverges_is_told(blank, optuna):
    outcome = call("sweep", *QUADRATIC, "--algorithm", "FCSG", "--search", "learning_rate=1e200:1e201", *SEARCH[2:])
    assert outcome.code == BROKE_OFF
    assert "Traceback" not in outcome.err


# ------------------------------------------------------------------------------- search, by itself


def quadratic(tried):
    """Best at a learning rate of 0.01; takes notes of what it was asked."""

    def evaluate(number, values):
        tried.append((number, values["learning_rate"]))
        return -((values["learning_rate"] - 0.01) ** 2)

    return evaluate


def test_a_study_that_was_stopped_between_trials_is_continued(tmp_path, optuna):
    database, tried = tmp_path / "study.db", []
    search.optimise(database, "A", RANGE, 2, quadratic(tried))
    search.optimise(database, "A", RANGE, TRIALS, quadratic(tried))
    assert [number for number, _ in tried] == [0, 1, 0, 1, 2, 3, 4]  # finished ones again, for their checkpoints
    assert len(set(tried)) == TRIALS


def test_a_study_goes_on_as_if_it_had_not_been_stopped(tmp_path, optuna):
    whole, parts = [], []
    search.optimise(tmp_path / "whole.db", "A", RANGE, 12, quadratic(whole))
    for trials in (2, 7, 12):
        search.optimise(tmp_path / "parts.db", "A", RANGE, trials, quadratic(parts))
    assert dict(parts) == dict(whole)


def test_a_trial_that_was_cut_off_before_it_had_values_is_no_loss(tmp_path, optuna):
    database, tried = tmp_path / "study.db", []
    study = optuna.create_study(storage=f"sqlite:///{database}", study_name="A", direction="maximize")
    study.ask()  # killed here, before anything was suggested
    search.optimise(database, "A", RANGE, 3, quadratic(tried))
    assert len([t for t in trials_of(optuna, database, "A") if t.params]) == 3


def test_a_trial_that_diverged_counts_and_does_not_win(tmp_path, optuna):
    def evaluate(number, values):
        return -math.inf if number == 1 else float(number)

    search.optimise(tmp_path / "study.db", "A", RANGE, 3, evaluate)
    study = optuna.load_study(study_name="A", storage=f"sqlite:///{tmp_path / 'study.db'}")
    assert [trial.value for trial in study.get_trials()] == [0.0, -math.inf, 2.0]
    assert study.best_trial.number == 2
