"""Personalised learning: the loss after adaptation, its gradient in three versions, and how models are judged."""

from collections import Counter

import pytest
import torch

from fedcso.core.errors import FedcsoError, InvalidValue
from fedcso.core.estimator import sample
from fedcso.core.oracle import Oracle
from fedcso.core.problem import Adapting, Lasting, split_steps
from fedcso.core.streams import stream
from fedcso.datasets import load
from fedcso.estimators.plain import plain
from fedcso.problems.personalised import Personalised, personalised
from tests import transcription as literal
from tests.helpers import CLEARLY, assert_close, classification, finite_difference, gap
from tests.helpers import personalised as adapted_case

CASE = adapted_case()
X = CASE.problem.init(stream(0, 0, 0))
(BATCH,) = split_steps(sample(CASE.problem, CASE.clients[2], stream(0, 0, 0), 1, 5, 4), 1)


def gradient(**options):
    return literal.as_matrix(Oracle(adapted_case(**options).problem, plain).grad(X, BATCH))


def softmax_loss(x, examples):
    inputs, labels = examples
    inputs = torch.cat([inputs, torch.ones_like(inputs[:, :1])], 1)
    return -torch.log_softmax(inputs @ x.T, 1)[range(len(labels)), labels].mean()


def after_adaptation(x, steps=1):
    """Return the loss on ξ of a linear classifier after steps along the gradient on η, written out."""
    support = type(BATCH.xi)(*(column[0] for column in BATCH.eta))
    for _ in range(steps):
        x = x - 0.3 * literal.softmax_gradient(x, BATCH._replace(xi=support))
    return softmax_loss(x, BATCH.xi)


# ------------------------------------------------------------------------------------------ f and g


@pytest.mark.parametrize("steps", [0, 1, 2])
def test_the_loss_is_that_after_adaptation(steps):
    problem = adapted_case(inner_steps=steps).problem
    assert_close(Oracle(problem, plain).value(X, BATCH), after_adaptation(literal.as_matrix(X), steps))


@pytest.mark.parametrize("steps", [1, 2])
def test_the_gradient_is_exact(steps):
    flat = literal.as_matrix(X)
    expected = finite_difference(lambda x: after_adaptation(x.reshape(flat.shape), steps), flat.flatten())
    assert_close(gradient(inner_steps=steps), expected.reshape(flat.shape), tolerance=1e-8)


def test_without_second_derivatives_it_is_the_slope_at_the_adapted_point():
    support = type(BATCH.xi)(*(column[0] for column in BATCH.eta))
    x = literal.as_matrix(X)
    adapted = x - 0.3 * literal.softmax_gradient(x, BATCH._replace(xi=support))
    assert_close(gradient(first_order=True), literal.softmax_gradient(adapted, BATCH))
    assert gap(gradient(first_order=True), gradient()) > CLEARLY


def test_differences_come_close_to_second_derivatives():
    assert_close(gradient(difference=1e-3), gradient(), tolerance=1e-6)
    assert_close(gradient(difference=1e-3, inner_steps=2), gradient(inner_steps=2), tolerance=1e-6)
    assert gap(gradient(difference=5.0), gradient()) > 1e-4


def test_without_adaptation_it_is_the_ordinary_problem():
    ordinary = Oracle(classification().problem, plain).grad(X, BATCH._replace(eta=()))
    assert_close(gradient(inner_steps=0), literal.as_matrix(ordinary))
    assert adapted_case(inner_steps=0).problem.inner_samples(5, 4) == 0


def test_all_outer_samples_share_the_inner_ones_which_are_independent_of_them():
    assert BATCH.eta.labels.shape == (1, 4)
    assert CASE.problem.inner_samples(5, 4) == 4
    drawn = sample(CASE.problem, CASE.clients[2], stream(0, 0, 0), 3, 5, 4)
    assert drawn.eta.inputs.shape == (3, 1, 4, 4)
    assert not torch.equal(drawn.eta.inputs[:, 0], drawn.xi.inputs[:, :4])


def test_a_client_is_one_task():
    assert isinstance(CASE.problem, Adapting)
    assert not isinstance(classification().problem, Adapting)
    assert CASE.problem.task_lasts(CASE.clients[0]) == Lasting.RUN


@pytest.mark.parametrize("wrong", [{"inner_rate": 0.0}, {"inner_steps": -1}, {"difference": -1.0}])
def test_settings_are_checked(wrong):
    with pytest.raises(InvalidValue, match=next(iter(wrong))):
        Personalised(classification().problem, **wrong)


def test_two_replacements_of_second_derivatives_are_refused():
    with pytest.raises(FedcsoError, match="first_order leaves out what difference replaces"):
        Personalised(classification().problem, first_order=True, difference=0.1)


# ---------------------------------------------------------------------------------------------- the task


def test_models_are_judged_after_adaptation_to_each_client():
    """One client at a time: a step along the gradient on its training examples, then its test examples."""
    task = personalised(clients=4, inner_rate=0.5, test_steps=2)
    x = task.starting_point(stream(0, 0, 0))
    measured, right, number = task.judge.measure(x, task.test), 0, 0
    weight, bias = x["0.weight"], x["0.bias"]
    for support, query in task.test.whole:
        w, b = weight, bias
        for _ in range(2):
            error = torch.softmax(support.inputs @ w.T + b, 1) - torch.eye(10)[support.labels]
            w, b = w - 0.5 * error.T @ support.inputs / len(error), b - 0.5 * error.mean(0)
        right += int(((query.inputs @ w.T + b).argmax(1) == query.labels).sum())
        number += len(query.labels)
    assert measured["accuracy"].item() == pytest.approx(right / number)
    assert task.judge.measure(x, task.validation).keys() == {"accuracy", "loss"}


def test_clients_differ_and_no_example_is_used_twice():
    task = personalised(clients=4, classes=3)
    assert [len(data.labels.unique()) for data in task.clients] == [3] * 4
    used = Counter(
        tuple(row)
        for validation, test in zip(task.validation, task.test.whole, strict=True)
        for part in (validation.support, validation.query, test.query)
        for row in part.inputs.tolist()
    )
    assert used == Counter(tuple(row) for row in load("digits").inputs.tolist())
    assert all(
        torch.equal(one.support.inputs, data.inputs[:]) for one, data in zip(task.validation, task.clients, strict=True)
    )
