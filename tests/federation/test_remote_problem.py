"""Models judged at sites: what a site answers, and what the coordinator makes of it."""

import math

import pytest
import torch

from fedcso.algorithms import FGDROKL, PerFedAvg
from fedcso.core.errors import FedcsoError
from fedcso.core.evaluation import evaluate
from fedcso.core.plan import Plan
from fedcso.core.streams import stream
from fedcso.core.task import Task
from fedcso.engines.loop import declare
from fedcso.federation.remote_problem import Answer, RemoteProblem, SiteInfo, Survey, remote_judge
from fedcso.problems import PROBLEMS
from tests.helpers import personalised, robust

pytest.importorskip("flwr", reason="needs Flower, the extra `flower`")

from fedcso.federation import client
from fedcso.federation.request import Order
from fedcso.federation.site import Site

TASK = PROBLEMS["classification"](clients=2)
X = TASK.problem.init(stream(0, 0, 0))


def coordinated(answers):
    """The coordinator's task over sites that give these answers, and the models they were asked about."""
    asked = []

    def ask(x):
        asked.append(x)
        return answers

    survey = Survey(ask)
    judge = remote_judge(TASK.judge, TASK.clients[0])
    sites = [SiteInfo(1, True, True, True) for _ in answers]
    task = Task(RemoteProblem(TASK.problem), sites, survey.on_test, survey.on_validation, judge)
    return task, asked


def test_a_site_measures_its_test_and_its_validation_data(tmp_path):
    order = Order({"problem": "classification", "clients": 2}, ["one", "two"])
    said, _ = client.evaluate(order, {"x": X}, Site("two", tmp_path, {}), tmp_path)
    with torch.no_grad():
        for key, data in {"metrics": TASK.test, "validation": TASK.validation}.items():
            assert said[key] == {name: float(value) for name, value in TASK.judge.measure(X, data).items()}
    assert said["metrics"] != said["validation"]


def test_the_coordinator_has_the_means_over_sites_and_validation_chooses():
    answers = [Answer({"accuracy": 0.5, "loss": 1.0}, {"accuracy": 0.9}), Answer({"accuracy": 0.7}, {"accuracy": 0.3})]
    task, _ = coordinated(answers)
    (found,) = evaluate(task, [X], [1.0, 1.0])
    assert found == pytest.approx({"client_accuracy": 0.6, "client_loss": 1.0, "validation_client_accuracy": 0.6})
    declared = declare(task)
    assert (declared.deciding, declared.validated, declared.headline) == (
        "validation_client_accuracy",
        True,
        "client_accuracy",
    )
    assert declared[declared.deciding].higher_is_better


def test_sites_are_asked_once_about_a_model_for_both_kinds_of_data():
    task, asked = coordinated([Answer({"accuracy": 0.5}, {"accuracy": 0.9})])
    other = TASK.problem.init(stream(1, 0, 0))
    for x in (X, other):
        evaluate(task, [x], [1.0])
    assert [x is model for x, model in zip(asked, (X, other), strict=True)] == [True, True]


def test_where_no_site_answers_the_deciding_metric_is_undefined():
    task, _ = coordinated([])
    (found,) = evaluate(task, [X], [])
    assert list(found) == ["client_accuracy", "validation_client_accuracy"]
    assert all(math.isnan(value) for value in found.values())


@pytest.mark.parametrize(
    ("problem", "method"), [(personalised().problem, PerFedAvg()), (robust().problem, FGDROKL())], ids=["Per", "FGDRO"]
)
def test_methods_with_a_problem_of_their_own_find_it_at_the_coordinator_too(problem, method):
    method.check(Plan(), RemoteProblem(problem), [SiteInfo(), SiteInfo()])
    with pytest.raises(FedcsoError, match="can't be used with RemoteProblem"):
        method.check(Plan(), RemoteProblem(TASK.problem), [SiteInfo()])
