"""Evaluation of models: what is measured, on which data, and what it is called."""

import pytest
import torch

from fedcso.core.errors import FedcsoError
from fedcso.core.evaluation import declare_metrics, evaluate
from fedcso.core.judge import ByClient, Judge
from fedcso.core.metric import Metric
from fedcso.core.streams import stream
from fedcso.core.task import Task
from fedcso.problems import NestedQuadratic
from tests.helpers import CASES

every_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


@every_case
def test_models_evaluated_together_are_evaluated_each(case):
    models = [case.problem.init(stream(seed, 0, 0)) for seed in range(3)]
    weights = [1.0, 2.0, 3.0, 4.0]
    together = evaluate(case, models, weights)
    alone = [evaluate(case, [x], weights)[0] for x in models]
    for one, other in zip(together, alone, strict=True):
        assert one == pytest.approx(other, rel=1e-12)
    assert together[0] != together[1]


# ------------------------------------------------------------------------- what is measured of a task


class Unknown(NestedQuadratic):
    """A problem whose exact F is unknown."""

    exact = None


DISTANCE = Metric("distance", higher_is_better=False)
SIZE = Metric("size", curve=False)
JUDGE = Judge(
    lambda x, number: {"distance": (x - number).square().sum(-1), "size": x.square().sum(-1)},
    [SIZE, DISTANCE],
    broadcasts=True,
)
X = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)


def task(exact=False, **held_out):
    problem = NestedQuadratic(3) if exact else Unknown(3)
    return Task(problem, problem.centres(2), judge=JUDGE, **held_out)


def test_validation_data_are_measured_beside_test_data():
    (found,) = evaluate(task(test=1.0, validation=2.0), [X], [1.0, 1.0])
    assert found == {"distance": 5.0, "size": 14.0, "validation_distance": 2.0, "validation_size": 14.0}
    assert evaluate(task(validation=2.0), [X], [1.0, 1.0]) == [{"validation_distance": 2.0, "validation_size": 14.0}]


def test_validation_data_change_nothing_that_is_measured_on_test_data():
    (with_them,) = evaluate(task(exact=True, test=1.0, validation=2.0), [X], [1.0, 1.0])
    (without,) = evaluate(task(exact=True, test=1.0), [X], [1.0, 1.0])
    assert list(with_them)[: len(without)] == list(without)
    assert {name: with_them[name] for name in without} == without


@pytest.mark.parametrize("test", [4.0, ByClient(4.0, [0.0, -1.0])])
def test_all_data_give_for_models_evaluated_together_what_they_give_for_each(test):
    models, whole = [X, 2 * X, X - 5], task(test=test, validation=ByClient(1.0, [2.0, 3.0]))
    together = evaluate(whole, models, [1.0, 1.0])
    assert together == [evaluate(whole, [x], [1.0, 1.0])[0] for x in models]
    assert len({row["validation_client_distance"] for row in together}) == 3


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("test", [None, 4.0, ByClient(4.0, [0.0, -1.0])])
@pytest.mark.parametrize("validation", [None, 4.0, ByClient(4.0, [0.0, -1.0])])
def test_what_is_declared_is_what_is_measured(exact, test, validation):
    whole = task(exact, test=test, validation=validation)
    (found,) = evaluate(whole, [X], [1.0, 1.0])
    assert {metric.name for metric in declare_metrics(whole)} == found.keys()


def test_of_validation_metrics_only_the_one_that_selects_is_shown():
    validated = [
        metric for metric in declare_metrics(task(test=1.0, validation=1.0)) if metric.name.startswith("validation")
    ]
    assert [(metric.name, metric.tabulated) for metric in validated] == [
        ("validation_size", False),
        ("validation_distance", True),
    ]


def test_a_judge_may_not_use_the_name_of_what_is_known_exactly():
    """The loss on test data would take the place of F, and choose the model."""
    judge = Judge(lambda x, data: {"loss": 1.0}, [Metric("loss", higher_is_better=False)])
    problem = NestedQuadratic(3)
    with pytest.raises(
        FedcsoError, match=r"^two metrics are called 'loss': rename the one that the judge's evaluate returns"
    ):
        evaluate(Task(problem, problem.centres(2), test="test", judge=judge), [X], [1.0, 1.0])


def test_clients_with_the_same_data_count_as_one_with_their_weights_added():
    problem, (first, second) = NestedQuadratic(3), NestedQuadratic(3).centres(2)
    asked = []

    class Recording(NestedQuadratic):
        def exact(self, x, clients, weights):
            asked.append(len(clients))
            return super().exact(x, clients, weights)

    (merged,) = evaluate(Task(Recording(3), [first, second, first]), [X], [1.0, 2.0, 3.0])
    (each,) = evaluate(Task(Recording(3), [first, second, first.clone()]), [X], [1.0, 2.0, 3.0])
    assert asked == [2, 3]
    assert merged == pytest.approx(each, rel=1e-12)
    (other,) = evaluate(Task(problem, [first, second]), [X], [1.0, 1.0])
    assert merged != pytest.approx(other, rel=1e-3)
