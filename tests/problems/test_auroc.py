"""AUROC as a min-max problem: the objective by hand, descent and ascent, and its saddle point."""

from dataclasses import replace

import pytest
import torch

from fedcso.algorithms import FCSG, FCSGM, FedAvg, Scaffold
from fedcso.core.errors import InvalidValue
from fedcso.core.oracle import Oracle
from fedcso.core.plan import Plan
from fedcso.core.problem import Batch
from fedcso.core.streams import stream
from fedcso.core.tree import is_finite, leaves
from fedcso.datasets import Examples
from fedcso.estimators.plain import plain
from fedcso.problems.auroc import AUROC, auroc, auroc_judge
from fedcso.problems.scores import Scores, ranking_judge
from tests.helpers import CLEARLY, assert_close, assert_same_run, finite_difference, run_on
from tests.rare import as_model, as_vector, auroc_case, auroc_gradient, h, labelled, linear

DATA = labelled(20, 6)
W = torch.tensor([0.6, -0.4, 0.9, 0.2], dtype=torch.float64)
A, B, Y = (torch.tensor(value, dtype=torch.float64) for value in (0.7, 0.2, -0.4))
P = 0.3
ORACLE = Oracle(AUROC(Scores(linear), P), plain)


class Shifted(Scores):
    """Scores that are all shifted by the same number."""

    def __init__(self, model, by):
        super().__init__(model)
        object.__setattr__(self, "by", by)

    def logits(self, x, inputs):
        return super().logits(x, inputs) + self.by


def point(w=W, a=A, b=B, y=Y):
    return {"primal": {"w": as_model(w), "a": a, "b": b}, "dual": y}


def everything(data: Examples = DATA) -> Batch:
    return Batch(data, ())


def score(z: torch.Tensor) -> float:
    return h(W, z)[0].item()


def test_the_objective_is_the_one_by_hand():
    a, b, y = A.item(), B.item(), Y.item()
    summands = []
    for z, label in zip(*DATA, strict=True):
        s = score(z)
        if label == 1:
            summand = (1 - P) * (s - a) ** 2 - 2 * (1 + y) * (1 - P) * s
        else:
            summand = P * (s - b) ** 2 + 2 * (1 + y) * P * s
        summands.append(summand - P * (1 - P) * y**2)
    losses = ORACLE.problem.losses(point(), DATA)
    assert losses.tolist() == pytest.approx(summands, rel=1e-12)
    assert ORACLE.value(point(), everything()).item() == pytest.approx(sum(summands) / len(summands), rel=1e-12)


def test_all_descend_but_the_dual_which_ascends():
    """Compare with finite differences of the value; that of the dual variable has the opposite sign."""

    def value(v):
        return ORACLE.value(point(v[:4], v[4], v[5], v[6]), everything())

    slopes = finite_difference(value, torch.cat([W, torch.stack([A, B, Y])]))
    assert slopes.abs().min() > CLEARLY / 10
    gradient = ORACLE.grad(point(), everything())
    primal = gradient["primal"]
    found = torch.cat([as_vector(primal["w"]), torch.stack([primal["a"], primal["b"], gradient["dual"]])])
    signs = torch.tensor([1.0, 1, 1, 1, 1, 1, -1], dtype=torch.float64)
    assert_close(found, signs * slopes, tolerance=1e-8)


def test_the_gradient_is_the_one_by_hand():
    w, a, b, y = auroc_gradient(P, W, A, B, Y, DATA)
    gradient = ORACLE.grad(point(), everything())
    assert_close(gradient, {"primal": {"w": as_model(w), "a": a, "b": b}, "dual": -y})


def at_the_saddle() -> tuple[Oracle, dict]:
    """a and b are mean scores, the dual variable is their difference, and p is the share of positives in the data."""
    high = torch.stack([h(W, z)[0] for z, label in zip(*DATA, strict=True) if label == 1]).mean()
    low = torch.stack([h(W, z)[0] for z, label in zip(*DATA, strict=True) if label == 0]).mean()
    oracle = Oracle(AUROC(Scores(linear), DATA.labels.double().mean().item()), plain)
    return oracle, point(a=high, b=low, y=low - high)


def test_at_the_saddle_point_of_a_model_only_the_model_can_move():
    oracle, x = at_the_saddle()
    gradient = oracle.grad(x, everything())
    zero = torch.zeros((), dtype=torch.float64)
    assert_close((gradient["primal"]["a"], gradient["primal"]["b"], gradient["dual"]), (zero, zero, zero))
    assert as_vector(gradient["primal"]["w"]).norm() > CLEARLY


def test_its_value_there_is_the_squared_loss_of_all_pairs():
    """Ying et al.: E (1 − h⁺ + h⁻)² = 1 + min max F / p(1−p), over all pairs of a positive and a negative."""
    oracle, x = at_the_saddle()
    pairs = [
        (1 - score(z) + score(other)) ** 2
        for z, label in zip(*DATA, strict=True)
        for other, other_label in zip(*DATA, strict=True)
        if label == 1 and other_label == 0
    ]
    p = oracle.problem.positive_rate
    value = oracle.value(x, everything()).item()
    assert 1 + value / (p * (1 - p)) == pytest.approx(sum(pairs) / len(pairs), rel=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_means_start_at_a_half_and_the_dual_at_zero_in_the_networks_precision(dtype):
    network = linear().to(dtype)
    x = AUROC(Scores(network), P).init(stream(0, 0, 0))
    assert {leaf.dtype for leaf in leaves(x)} == {dtype}
    assert [x["primal"]["a"].item(), x["primal"]["b"].item(), x["dual"].item()] == [0.5, 0.5, 0.0]
    assert_close(x["primal"]["w"], Scores(network).network.init(stream(0, 0, 0)), tolerance=0.0)


def test_a_network_that_knows_nothing_is_not_pulled_down_as_a_whole():
    """From a = b = 0, all scores fell until the sigmoid was saturated, and CODA+ made no progress."""
    problem = AUROC(Scores(linear), float(DATA.labels.double().mean()))
    start = problem.init(stream(0, 0, 0))["primal"]
    pulls = []
    for a, b in ((start["a"], start["b"]), (0 * A, 0 * B)):
        common = torch.zeros((), dtype=torch.float64, requires_grad=True)
        losses = replace(problem, scores=Shifted(problem.scores.model, common)).losses(point(0 * W, a, b, 0 * Y), DATA)
        pulls += torch.autograd.grad(losses.mean(), common)
    assert abs(pulls[0]) < 1e-12 < 1e-2 < pulls[1]


def test_the_network_is_what_is_judged_ranked_and_delivered():
    problem, test = ORACLE.problem, labelled(15, 5, seed=3)
    judge = auroc_judge(problem)
    assert judge.measure(point(), test) == ranking_judge(problem.scores).measure(as_model(W), test)
    assert judge.measure(point(), None) == {}
    scores, labels = judge.rank(point(), test)
    assert torch.equal(labels, test.labels)
    assert_close(judge.network(point(), test).module(test.inputs).squeeze(1).detach(), scores)


def test_the_task_knows_the_share_of_positives_of_all_sites():
    task = auroc("linear", data="breast_cancer", clients=3)
    labels = torch.cat([data.labels for data in task.clients])
    assert task.problem.positive_rate == pytest.approx(labels.sum().item() / len(labels), rel=1e-12)
    assert task.judge.select == "average_precision"


@pytest.mark.parametrize("rate", [0.0, -0.1, 1.5])
def test_a_share_that_is_none_is_refused(rate):
    with pytest.raises(InvalidValue, match=f"positive_rate = {rate}"):
        AUROC(Scores(linear), rate)


METHODS = {"FedAvg": FedAvg(0.1), "FCSG": FCSG(0.1), "FCSG-M": FCSGM(0.1, 0.4), "SCAFFOLD": Scaffold(0.1)}


@pytest.mark.parametrize("algorithm", METHODS.values(), ids=METHODS)
def test_engines_agree(algorithm):
    case, plan = auroc_case(), Plan(rounds=2, local_steps=2, outer_batch=3, participation=3)
    expected = run_on("reference", algorithm, case, plan)
    assert is_finite(expected.shared)
    assert expected.costs.inner_samples == 0
    assert_same_run(run_on("threads", algorithm, case, plan, workers=2), expected, tolerance=0.0)
    assert_same_run(run_on("stacked", algorithm, case, plan), expected, tolerance=1e-10)
