import math

import pytest
import torch

from fedcso.core.tree import leaves
from fedcso.fitting.objectives import OBJECTIVES
from fedcso.fitting.train import Group, Trainer, make_task, plan_of, run_settings, whole_rounds
from fedcso.runs.config import RunConfig
from fedcso.runs.study import run_in_memory
from tests.fitting.small_sites import small_sites


@pytest.fixture
def trainer():
    return Trainer(small_sites(), run_in_memory)


@pytest.mark.parametrize("key", OBJECTIVES)
def test_every_objective_trains_and_is_judged_on_validation_data_only(trainer, key):
    one, other = trainer.train("try", Group(key, "linear"), [0.1, 1.0], 20, [0, 1])
    assert (one.rate, other.rate) == (0.1, 1.0)
    assert 0 < one.value <= 1
    assert all("average_precision" not in row for trace in one.traces for row in trace.rows)
    assert trainer.seconds > 0


def test_the_value_is_the_mean_over_seeds_of_the_best_evaluations_and_the_model_is_that_of_the_best_seed(trainer):
    (tried,) = trainer.train("try", Group("weighted", "mlp"), [1.0], 60, [3, 4])
    best = [max(row["validation_average_precision"] for row in trace.rows) for trace in tried.traces]
    assert tried.value == pytest.approx(sum(best) / 2)
    assert tried.seed == (3 if best[0] >= best[1] else 4)
    expected = tried.traces[best.index(max(best))].best
    assert all(torch.equal(a, b) for a, b in zip(leaves(tried.model), leaves(expected), strict=True))


def test_a_model_from_the_end_of_its_run_was_still_improving(trainer):
    (slow,) = trainer.train("slow", Group("weighted", "linear"), [1e-3], 40, [0])
    (failing,) = trainer.train("failing", Group("auroc", "linear"), [1e30], 40, [0])
    values = [row["validation_average_precision"] for row in slow.traces[0].rows]
    assert slow.improving == (values.index(max(values)) >= 3)  # of steps 0, 10, 20, 30, 40
    assert not failing.improving


def test_a_run_is_evaluated_as_often_as_told(trainer):
    (tried,) = trainer.train("try", Group("auprc", "linear"), [0.1], 200, [0], evaluations=5)
    assert [row["step"] for row in tried.traces[0].rows] == [0, 40, 80, 120, 160, 200]


def test_all_tasks_share_the_validation_rows(trainer):
    some, other = (trainer.train("try", Group(key, "linear"), [0.1], 20, [0])[0] for key in ("auprc", "weighted"))
    assert some.task.validation.inputs.data_ptr() == other.task.validation.inputs.data_ptr()
    assert some.task.test is None


def test_a_second_objective_starts_from_the_model_of_the_first_and_they_share_the_steps(trainer):
    (tried,) = trainer.train("try", Group("auprc_after_weighted", "linear", first_rate=0.3), [1e-9], 40, [0])
    (first,) = trainer.train("first", Group("weighted", "linear"), [0.3], 20, [0])
    assert tried.steps == 20
    assert tried.total_steps == 40
    for start, end in zip(leaves(first.model), leaves(tried.model), strict=True):
        assert torch.allclose(start, end, atol=1e-6)


def test_pooled_data_get_as_many_examples_as_all_sites_together(trainer):
    (apart,) = trainer.train("apart", Group("auprc", "linear"), [0.1], 20, [0])
    (pooled,) = trainer.train("pooled", Group("auprc", "linear"), [0.1], 20, [0], "pooled")
    costs = [trace.costs for trace in (*apart.traces, *pooled.traces)]
    assert costs[0].outer_samples == costs[1].outer_samples
    assert costs[0].inner_samples == costs[1].inner_samples


def test_a_run_that_fails_is_worth_nothing(trainer):
    (tried,) = trainer.train("try", Group("auroc", "linear"), [1e30], 20, [0])
    assert tried.value == -math.inf


@pytest.mark.parametrize("key", [key for key, one in OBJECTIVES.items() if one.after is None])
def test_chosen_settings_are_a_configuration_of_run_with_the_same_problem_and_method(key):
    group = Group(key, "linear")
    flat = run_settings(group, 0.3, 40)
    config = RunConfig.from_flat({**flat, "data": "digits", "clients": 3, "classes": 0})
    ((algorithm, _),) = config.built().values()
    assert algorithm == group.objective.algorithm(0.3, 40)
    assert config.plan == plan_of(group, 40)
    assert config.plan.total_steps == 40
    ours, theirs = make_task(key, "linear", small_sites()).problem, config.task().problem
    assert type(ours) is type(theirs)
    for name in {"margin", "sigmoid"} & vars(ours).keys():
        assert getattr(ours, name) == getattr(theirs, name)


def test_steps_are_whole_rounds():
    assert [whole_rounds(steps) for steps in (1, 19, 20, 255.5)] == [10, 10, 20, 250]
