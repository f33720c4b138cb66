"""A `Functional` can be pickled and copied, even after use, and so can objects that hold one."""

import copy
import pickle
from functools import partial

import pytest
import torch
from torch import nn

from fedcso.core.streams import stream
from fedcso.models import Functional
from fedcso.problems import AUROC, Classification, CrossEntropy
from fedcso.problems.scores import Scores
from tests.helpers import assert_close
from tests.rare import as_model, labelled, linear

WAYS = {"pickled": lambda thing: pickle.loads(pickle.dumps(thing)), "deep-copied": copy.deepcopy, "copied": copy.copy}
every_way = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
DATA, X = labelled(6, 2), as_model(torch.tensor([0.6, -0.4, 0.9, 0.2], dtype=torch.float64))


@every_way
@pytest.mark.parametrize("used", [False, True])
def test_a_copy_gives_the_same(way, used):
    functional = Functional(linear)
    if used:
        functional.apply(X, DATA.inputs)
    other = way(functional)
    assert_close(other.apply(X, DATA.inputs), functional.apply(X, DATA.inputs), tolerance=0.0)
    assert_close(other.init(stream(0, 0, 0)), functional.init(stream(0, 0, 0)), tolerance=0.0)


@pytest.mark.parametrize("way", [WAYS["pickled"], WAYS["deep-copied"]], ids=["pickled", "deep-copied"])
def test_a_copy_does_not_share_its_module(way):
    functional = Functional(nn.Linear(2, 1))
    other = way(functional)
    with torch.no_grad():
        other.module.weight += 1
    assert not torch.equal(other.module.weight, functional.module.weight)


PROBLEMS = {
    "auroc": AUROC(Scores(linear), 0.3),
    "cross_entropy": CrossEntropy(Scores(linear), 2.0),
    "classification": Classification(partial(nn.Linear, 3, 2, dtype=torch.float64)),
}


@every_way
@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
def test_a_problem_can_be_copied(way, problem):
    other = way(problem)
    x = problem.init(stream(0, 0, 0))
    assert_close(other.init(stream(0, 0, 0)), x, tolerance=0.0)
    assert_close(other.losses(x, DATA), problem.losses(x, DATA), tolerance=0.0)
