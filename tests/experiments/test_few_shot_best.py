"""The ways to few-shot learning in miniature, and the statements on accuracies made by hand."""

from dataclasses import replace
from functools import partial

import pytest

from fedcso.core.schedules import Cosine
from fedcso.core.trace import Trace
from fedcso.experiments import EXPERIMENTS, few_shot_best_report
from fedcso.experiments.few_shot_best import rates_by_score
from fedcso.experiments.few_shot_best_report import Trial
from fedcso.experiments.few_shot_best_settings import SHOTS
from fedcso.experiments.few_shot_ways import LONG, WAYS, adam_at_the_server
from fedcso.problems import PROBLEMS
from tests.command_line import read_csv, run, without_drawing
from tests.experiments.miniature import shrink
from tests.few_characters import OPTIONS, instead_of_glyphs

TINY = {
    "data": "glyphs",
    "clients": 2,
    "filters": 4,
    "steps": 10,
    "trial_steps": 1,
    "long_steps": 12,
    "seeds": [0, 1],
    "curve_tasks": 2,
    "client_tasks": 1,
    "test_tasks": 3,
    "validation_tasks": 2,
}


@pytest.fixture(scope="module")
def tiny():
    with pytest.MonkeyPatch.context() as patch:
        without_drawing(patch)
        instead_of_glyphs(patch)
        for name in ("maml", "pretraining"):
            patch.setitem(PROBLEMS, name, partial(PROBLEMS[name], ways=OPTIONS["ways"], queries=OPTIONS["queries"]))
        shrink(patch, "few-shot", **TINY)
        yield


@pytest.fixture(scope="module")
def finished(tiny, tmp_path_factory):
    return run("reproduce", "few-shot", "--data", "1-shot", out=tmp_path_factory.mktemp("runs"))


def test_every_way_is_run_with_every_seed_and_one_of_federated_meta_learning_for_longer(finished):
    table = read_csv(finished / "table.csv")
    assert [row["way"] for row in table[:-1]] == list(WAYS)
    assert all(row["seeds"] == "2" and row["steps"] == "10" for row in table[:-1])
    assert table[-1]["way"] in [f"{way}, 12 steps" for way in LONG]
    assert (table[-1]["seeds"], table[-1]["steps"]) == ("1", "12")
    assert (finished / "few-shot.png").is_file()


def test_all_ways_of_meta_learning_see_as_many_tasks(finished):
    table = read_csv(finished / "table.csv")[:-1]
    assert {row["samples ξ"] for row in table if "classifier" not in row["way"]} == {str(10 * TINY["clients"])}


def test_rates_are_chosen_by_validation_accuracy(finished):
    tried = read_csv(finished / "trials.csv")
    chosen = {row["way"]: float(row["rate"]) for row in read_csv(finished / "table.csv")}
    for way in WAYS:
        own = [row for row in tried if row["way"] == way]
        short, long = ([row for row in own if row["steps"] == steps] for steps in ("1", "10"))
        assert (len(short), len(long)) == (4, 2)
        assert best_of(short)["rate"] in {row["rate"] for row in long}
        assert chosen[way] == pytest.approx(float(best_of(long)["rate"]))


def best_of(trials):
    return max(trials, key=lambda row: float(row["validation_accuracy"]))


def test_the_trials_of_the_full_length_decide_whatever_the_short_ones_say():
    tried = [Trial(0.1, 5, 0.9), Trial(0.3, 5, 0.8), Trial(1.0, 5, 0.7), Trial(0.1, 50, 0.5), Trial(0.3, 50, 0.6)]
    assert rates_by_score(tried[:3]) == [0.1, 0.3, 1.0]
    assert rates_by_score(tried) == [0.3, 0.1]


def test_finished_runs_are_taken_from_an_earlier_folder(finished, tmp_path):
    folder = run("reproduce", "few-shot", "--data", "1-shot", "--from", finished, out=tmp_path)
    assert not list((folder / "checkpoints").glob("*"))
    assert (folder / "table.csv").read_text() == (finished / "table.csv").read_text()


def test_one_client_alone_has_its_own_characters_and_the_tasks_of_all():
    options = {name: OPTIONS[name] for name in OPTIONS if name != "clients"}
    task = PROBLEMS["maml"](**options, clients=2)
    way = WAYS["MAML with Adam, one client alone"]
    alone = way.who_trains(task)
    assert len(alone.clients) == len(alone.test.clients) == 1
    assert alone.test.whole is task.test.whole
    assert way.plan(5, 1, clients=16).outer_batch == 16
    assert WAYS["MAML with FCSG-M"].plan(5, 1, clients=16).outer_batch == 1


def test_adam_at_the_server_sees_the_mean_gradient_and_its_rate_falls():
    method = adam_at_the_server(0.01)
    assert method.base.learning_rate == 1.0
    assert method.server_rate == Cosine(0.01)


def statements(together, alone, long):
    config = replace(EXPERIMENTS["few-shot"].settings(False), cases=["1-shot"])
    accuracy = {
        "1-shot": {"MAML with Adam at the server": together, "MAML with Adam, one client alone": alone},
    }
    trace = Trace(measured={"accuracy": long, "accuracy_interval": 0.01})
    return [one.holds for one in few_shot_best_report.check(config, accuracy, {"1-shot": trace})]


def test_a_gain_must_be_outside_its_interval_and_a_target_must_be_reached():
    assert statements([0.9, 0.91, 0.92], [0.8, 0.81, 0.82], 0.96) == [True, True]
    assert statements([0.9, 0.8, 0.92], [0.8, 0.85, 0.82], 0.959) == [False, False]


def test_cases_are_one_shot_and_five_shot():
    config = EXPERIMENTS["few-shot"].settings(False)
    assert [config.problem(case, LONG[0])["shots"] for case in config.cases] == list(SHOTS.values())
    assert config.limited_to(["5-shot"]).cases == ["5-shot"]
