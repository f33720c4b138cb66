"""Ordinary federated learning as the special case g = identity."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from fedcso.core.errors import FedcsoError
from fedcso.core.estimator import sample
from fedcso.core.oracle import Oracle
from fedcso.core.problem import split_steps
from fedcso.core.streams import stream
from fedcso.datasets import Examples
from fedcso.datasets.examples import pool_examples
from fedcso.estimators.plain import plain
from fedcso.problems.classification import Classification
from tests import transcription as literal
from tests.helpers import assert_close, classification

CASE = classification()
X = CASE.problem.init(stream(0, 0, 0))


def a_batch(b: int = 5):
    (batch,) = split_steps(sample(CASE.problem, CASE.clients[2], stream(0, 0, 0), 1, b, 3), 1)
    return batch


def test_the_loss_is_cross_entropy():
    batch = a_batch()
    logits = batch.xi.inputs @ X["weight"].T + X["bias"]
    assert_close(Oracle(CASE.problem, plain).value(X, batch), F.cross_entropy(logits, batch.xi.labels))


def test_the_gradient_is_the_ordinary_one():
    batch = a_batch()
    gradient = Oracle(CASE.problem, plain).grad(X, batch)
    assert_close(literal.as_matrix(gradient), literal.softmax_gradient(literal.as_matrix(X), batch))


def test_examples_are_drawn_with_their_labels_and_all_of_them_equally_often():
    data, draws = CASE.clients[2], 12_000
    drawn = CASE.problem.sample_outer(data, stream(0, 0, 0), (draws,))
    which = (drawn.inputs.unsqueeze(1) == data.inputs).all(2)
    assert (which.sum(1) == 1).all()
    assert torch.equal(data.labels[which.double().argmax(1)], drawn.labels)
    p = 1 / len(data.labels)
    assert ((which.sum(0) - draws * p).abs() < 4 * math.sqrt(draws * p * (1 - p))).all()


def test_there_are_no_inner_samples():
    assert a_batch().eta == ()
    assert CASE.problem.inner_samples(5, 7) == 0


def test_a_client_is_as_large_as_its_data():
    assert [CASE.problem.size(data) for data in CASE.clients] == [3, 7, 12, 5]


def test_evaluation_gives_loss_and_accuracy():
    logits = CASE.test.inputs @ X["weight"].T + X["bias"]
    metrics = CASE.judge.measure(X, CASE.test)
    right = (logits.argmax(1) == CASE.test.labels).tolist()
    assert_close(metrics["loss"], F.cross_entropy(logits, CASE.test.labels))
    assert metrics["accuracy"].item() == sum(right) / len(right)
    assert CASE.judge.measure(X, None) == {}


def test_pooled_data_are_all_data():
    together = pool_examples(CASE.clients)
    assert isinstance(together, Examples)
    assert len(together.labels) == sum(len(data.labels) for data in CASE.clients)
    assert torch.equal(together.inputs[:3], CASE.clients[0].inputs)


def test_a_client_without_examples_is_named():
    problem = Classification(nn.Linear(2, 2))
    nothing = Examples(torch.zeros(0, 2), torch.zeros(0, dtype=torch.int64))
    with pytest.raises(FedcsoError, match="a client has no examples"):
        problem.sample_outer(nothing, stream(0, 0, 0), (1, 1))
