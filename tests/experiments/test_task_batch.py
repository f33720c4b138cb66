"""The tasks per step in miniature, and its statement on accuracies made by hand."""

from dataclasses import replace

import pytest

from fedcso.algorithms import FCSGM
from fedcso.experiments import EXPERIMENTS, task_batch
from fedcso.experiments.few_shot_settings import FOUND, METHODS
from fedcso.experiments.task_batch import ALIKE, OURS, THEIRS
from tests.command_line import read_csv, run, without_drawing
from tests.experiments.miniature import shrink, shrink_few_shot

TINY = {
    "data": "glyphs",
    "clients": 2,
    "filters": 4,
    "step_tasks": 2,
    "local_steps": 1,
    "rounds": 1,
    "evaluate_every": 1,
    "long_steps": 0,
    "seeds": [0],
    "curve_tasks": 1,
    "client_tasks": 1,
    "test_tasks": 3,
    "trial_rounds": 1,
    "rates": [0.1, 0.01],
    "rotations": False,
}


@pytest.fixture(scope="module", autouse=True)
def tiny():
    with pytest.MonkeyPatch.context() as patch:
        without_drawing(patch)
        shrink_few_shot(patch)
        shrink(patch, "figure2", **TINY)
        figure2 = EXPERIMENTS["figure2"].settings(False)
        shrink(patch, "task-batch", figure2=figure2, tasks=24, batches=[1, 2, 4], seeds=[0, 1])
        yield


@pytest.fixture(scope="module")
def finished(tiny, tmp_path_factory):
    return run("reproduce", "task-batch", out=tmp_path_factory.mktemp("runs"))


def test_every_method_sees_the_same_number_of_tasks_for_every_b(finished):
    table = read_csv(finished / "table.csv")
    assert [(row["algorithm"], row["b"]) for row in table] == [(m, b) for b in "124" for m in (OURS, ALIKE, *THEIRS)]
    assert [int(row["b"]) * int(row["steps"]) * TINY["clients"] for row in table] == [24] * 12
    assert (finished / "task-batch.png").is_file()


def test_settings_are_those_of_the_trials_of_figure_2_which_need_not_run_again(finished, tmp_path):
    earlier = run("reproduce", "figure2", out=tmp_path)
    folder = run("reproduce", "task-batch", "--from", earlier, out=tmp_path / "again")
    assert (folder / "table.csv").read_text() == (finished / "table.csv").read_text()
    assert not list((folder / "checkpoints").glob("trial*"))
    tried = [row for row in read_csv(earlier / "trials.csv") if row["algorithm"] == OURS]
    best = min(tried, key=lambda row: float(row["validation_loss"]))
    row = next(row for row in read_csv(folder / "table.csv") if row["algorithm"] == OURS)
    assert float(row["learning rate"]) == pytest.approx(float(best["learning_rate"]), rel=0.005)
    both = run("reproduce", "task-batch", "--from", finished, "--from", earlier, out=tmp_path / "both")
    assert not list((both / "checkpoints").glob("*")), "outcomes of the first folder were not taken"


def test_one_more_run_of_ours_has_the_learning_rate_and_momentum_of_theirs():
    theirs = {"learning_rate": 0.3, "momentum": 0.2, "tracking": 0.7}
    made = task_batch.contenders({OURS: {"learning_rate": 0.5, "momentum": 0.9}, **dict.fromkeys(THEIRS, theirs)})
    assert list(made) == [OURS, ALIKE, *THEIRS]
    assert made[OURS] == FCSGM(learning_rate=0.5, momentum=0.9)
    assert made[ALIKE] == FCSGM(learning_rate=0.3, momentum=0.2)


def test_with_one_task_per_step_both_rules_are_the_same():
    """With the same settings, as in the quick version."""
    whole = task_batch.settings(quick=True).figure2
    assert whole.chosen[THEIRS[0]] == whole.chosen[THEIRS[1]] == FOUND["Local-SCGDM"]
    assert [METHODS[name].build({}).blend for name in THEIRS] == ["mean", "each"]


@pytest.mark.parametrize("quick", [True, False])
def test_tasks_are_whole_rounds(quick):
    config = task_batch.settings(quick)
    for b in config.batches:
        assert config.rounds(b) * config.figure2.local_steps * b * config.figure2.clients == config.tasks
    assert replace(config, tasks=config.tasks * 2).rounds(1) == 2 * config.rounds(1)


def accuracies(per_step, per_task=(0.0, 0.0, 0.0), noise=(0.0, 0.001, -0.001)):
    """Accuracies with these leads of FCSG-M for b = 1, 2, 5."""
    made = {}
    for b, *leads in zip((1, 2, 5), per_step, per_task, strict=True):
        made[OURS, b] = made[ALIKE, b] = [0.8] * len(noise)
        for other, lead in zip(THEIRS, leads, strict=True):
            made[other, b] = [0.8 - lead + part * b for part in noise]
    return made


def test_the_statement_holds_if_the_lead_over_the_first_rule_grows():
    statement = task_batch.check(accuracies((0.0, 0.05, 0.1)), OURS)
    assert statement.holds
    assert "each with its own settings" in statement.paper
    assert "+0.0000 at b = 1, +0.0500 at b = 2, +0.1000 at b = 5" in statement.measured
    assert "with the same learning rate and momentum" in task_batch.check(accuracies((0.0, 0.05, 0.1)), ALIKE).paper


@pytest.mark.parametrize("leads", [(0.1, 0.05, 0.0), (0.1, 0.1, 0.1)])
def test_it_does_not_if_the_lead_stays_or_falls_whatever_the_other_rule_does(leads):
    assert not task_batch.check(accuracies(leads, per_task=(0.0, 0.1, 0.2)), OURS).holds


def test_it_does_not_if_seeds_disagree_or_there_is_only_one():
    assert not task_batch.check(accuracies((0.0, 0.05, 0.1), noise=(0.0, 0.1, -0.1)), OURS).holds
    assert not task_batch.check(accuracies((0.0, 0.05, 0.1), noise=(0.0,)), OURS).holds


def test_there_is_a_curve_for_each_method():
    (axes,) = task_batch.draw(accuracies((0.0, 0.05, 0.1))).axes
    assert [one.get_label() for one in axes.containers] == [OURS, ALIKE, *THEIRS]
    assert list(axes.containers[2].lines[0].get_ydata()) == pytest.approx([0.8, 0.75, 0.7])
