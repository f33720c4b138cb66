"""Robust learning across clients: weights by their losses, the worst client's accuracy."""

import math

import pytest
import torch

from fedcso.core.errors import InvalidValue
from fedcso.core.estimator import sample
from fedcso.core.oracle import Oracle
from fedcso.core.problem import ExponentialOuter, split_steps
from fedcso.core.streams import stream
from fedcso.estimators.plain import plain
from fedcso.problems.robust import Robust, robust
from tests.helpers import assert_close, classification
from tests.least_squares import CLIENTS, LeastSquares, LogMeanExp, slope, value

LAMBDA, LEVEL = 0.7, 0.2
PROBLEM = Robust(LeastSquares(), LAMBDA, LEVEL)
X = torch.tensor([0.4, -0.3, 0.2], dtype=torch.float64)


def test_the_gradient_has_the_weight_of_the_clients_loss():
    """Two batches of five examples, each with its own loss and weight."""
    (batch,) = split_steps(sample(PROBLEM, CLIENTS[0], stream(0, 0, 0), 1, 2, 5), 1)
    assert batch.eta.inputs.shape == (2, 5, 3)
    parts = [type(batch.eta)(batch.eta.inputs[i], batch.eta.labels[i]) for i in range(2)]
    weights = [math.exp((value(X, part) - LEVEL) / LAMBDA) for part in parts]
    found, gradient = Oracle(PROBLEM, plain).value_and_grad(X, batch)
    assert_close(found, torch.tensor(LAMBDA * sum(weights) / 2, dtype=torch.float64))
    assert_close(gradient, sum(w * slope(X, part) for w, part in zip(weights, parts, strict=True)) / 2)


def test_its_minimiser_is_that_of_the_largest_weighted_mean():
    """∇ λ log (1/N) Σ exp(L_n/λ) is ∇F divided by a number: the mean of ∇L_n with weights softmax(L/λ)."""
    values = torch.stack([value(X, data) for data in CLIENTS])
    weights = torch.softmax(values / LAMBDA, 0)
    weighted = sum(w * slope(X, data) for w, data in zip(weights, CLIENTS, strict=True))
    exponentials = torch.exp((values - LEVEL) / LAMBDA)
    objective = sum(e * slope(X, data) for e, data in zip(exponentials, CLIENTS, strict=True)) / 3
    assert_close(objective, weighted * exponentials.mean())


def test_it_shows_its_exponential_to_methods():
    assert isinstance(PROBLEM, ExponentialOuter)
    y = torch.tensor(1.3, dtype=torch.float64)
    assert_close(PROBLEM.log_weight(y), torch.func.grad(lambda value: PROBLEM.outer(value, None))(y).log())
    assert not isinstance(classification().problem, ExponentialOuter)
    assert not isinstance(LogMeanExp(), ExponentialOuter)  # a logarithm, with a temperature too


def test_a_temperature_of_zero_is_refused():
    with pytest.raises(InvalidValue, match="temperature = 0 must be a finite number above 0"):
        Robust(LeastSquares(), 0)


def test_the_worst_client_is_reported_and_decides():
    task = robust(clients=4)
    x = task.starting_point(stream(0, 0, 0))
    right = [
        ((own.inputs @ x["0.weight"].T + x["0.bias"]).argmax(1) == own.labels).double().mean().item()
        for own in task.test
    ]
    measured = task.judge.measure(x, task.test)
    assert measured["worst_accuracy"].item() == min(right) < max(right)
    assert task.judge.select == "worst_accuracy"
    assert min(right) < measured["accuracy"].item() < max(right)


def test_the_level_is_the_loss_of_a_guess():
    assert robust(clients=4).problem.level == math.log(10)
