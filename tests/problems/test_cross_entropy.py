"""Cross-entropy of rare positives, plain and weighted, compared with torch's."""

import pytest
import torch
import torch.nn.functional as F
from sklearn.metrics import average_precision_score

from fedcso.core.errors import InvalidValue
from fedcso.core.oracle import Oracle
from fedcso.core.problem import Batch
from fedcso.core.streams import stream
from fedcso.estimators.plain import plain
from fedcso.problems.cross_entropy import CrossEntropy, cross_entropy
from fedcso.problems.scores import Scores
from tests.helpers import CLEARLY, assert_close
from tests.rare import as_model, as_vector, labelled, linear

DATA = labelled(20, 4)
X = torch.tensor([0.6, -0.4, 0.9, 0.2], dtype=torch.float64)


def value_and_grad(weight: float, x: torch.Tensor):
    return Oracle(CrossEntropy(Scores(linear), weight), plain).value_and_grad(as_model(x), Batch(DATA, ()))


@pytest.mark.parametrize("weight", [1.0, 4.0, 0.25])
def test_loss_and_gradient_are_those_of_torch(weight):
    value, gradient = value_and_grad(weight, X)
    x = X.clone().requires_grad_()
    logits = DATA.inputs @ x[:-1] + x[-1]
    loss = F.binary_cross_entropy_with_logits(logits, DATA.labels.double(), pos_weight=torch.tensor(weight))
    loss.backward()
    assert_close(value, loss.detach())
    assert_close(as_vector(gradient), x.grad)


def test_plain_is_the_default():
    unweighted = CrossEntropy(Scores(linear)).losses(as_model(X), DATA)
    weighted = CrossEntropy(Scores(linear), 4.0).losses(as_model(X), DATA)
    assert_close(weighted / unweighted, torch.where(DATA.labels == 1, 4.0, 1.0).double())


def test_weights_make_both_classes_count_alike():
    """With weights, the gradient of a constant model vanishes at score ½; without weights it does not."""
    nothing = torch.zeros(4, dtype=torch.float64)
    _, balanced = value_and_grad(16 / 4, nothing)
    _, unweighted = value_and_grad(1.0, nothing)
    assert balanced["bias"].item() == pytest.approx(0.0, abs=1e-15)
    assert unweighted["bias"].item() == pytest.approx(0.5 - 4 / 20)
    assert unweighted["bias"].abs() > CLEARLY


def test_the_task_weights_by_the_training_data_of_all_sites():
    task = cross_entropy("linear", weighted=True, data="breast_cancer", clients=3)
    labels = torch.cat([data.labels for data in task.clients])
    negatives, positives = (int((labels == value).sum()) for value in (0, 1))
    assert task.problem.positive_weight * positives == pytest.approx(negatives, rel=1e-12)
    assert cross_entropy("linear", data="breast_cancer", clients=3).problem.positive_weight == 1.0


def test_no_inner_samples_are_drawn():
    problem = CrossEntropy(Scores(linear))
    xi = problem.sample_outer(DATA, stream(0, 0, 0), (2, 3))
    assert problem.sample_inner(DATA, stream(0, 0, 0), xi, 5) == ()
    assert problem.inner_samples(3, 5) == 0


def test_it_is_judged_by_average_precision():
    task = cross_entropy("linear", data="breast_cancer", clients=3)
    x = task.problem.init(stream(0, 0, 0))
    assert task.judge.select == "average_precision"
    scores, labels = task.judge.rank(x, task.validation)
    expected = average_precision_score(labels, scores)
    assert task.judge.measure(x, task.validation)["average_precision"] == pytest.approx(expected, rel=1e-12)


def test_a_site_needs_an_example_and_no_positive():
    problem = CrossEntropy(Scores(linear))
    assert [problem.trains(labelled(*counts)) for counts in ((5, 2), (5, 0), (0, 0))] == [True, True, False]


@pytest.mark.parametrize("weight", [0.0, -1.0, float("nan"), float("inf")])
def test_a_weight_that_is_none_is_refused(weight):
    with pytest.raises(InvalidValue, match="positive_weight = "):
        CrossEntropy(Scores(linear), weight)


BALANCED = CrossEntropy(Scores(linear), balanced=True)


def test_half_of_a_balanced_batch_is_positive_and_all_examples_can_be_drawn():
    drawn = BALANCED.sample_outer(DATA, stream(0, 0, 0), (50, 6))
    assert (drawn.labels.sum(-1) == 3).all()
    rows = {tuple(row) for row in drawn.inputs.reshape(-1, DATA.inputs.shape[-1]).tolist()}
    assert rows == {tuple(row) for row in DATA.inputs.tolist()}


def test_balanced_batches_have_the_gradient_of_weighted_classes_with_less_noise():
    rate = float(DATA.labels.double().mean())
    weighted = CrossEntropy(Scores(linear), (1 - rate) / rate)

    def gradients(problem, scale):
        drawn = problem.sample_outer(DATA, stream(0, 0, 0), (1000, 4))
        found = [
            as_vector(Oracle(problem, plain).value_and_grad(as_model(X), Batch(type(DATA)(inputs, labels), ()))[1])
            for inputs, labels in zip(*drawn, strict=True)
        ]
        return scale * torch.stack(found)

    # Weighted: E = (1 − π)(E⁺ + E⁻), balanced: (E⁺ + E⁻)/2.
    ours, theirs = gradients(BALANCED, 2 * (1 - rate)), gradients(weighted, 1.0)
    error = 4 * (theirs.var(0) / len(theirs)).sqrt()
    assert ((ours.mean(0) - theirs.mean(0)).abs() < error + 4 * (ours.var(0) / len(ours)).sqrt()).all()
    assert ours.var(0).sum() < 0.8 * theirs.var(0).sum()


@pytest.mark.parametrize("positives", [0, 20])
def test_a_client_with_one_kind_of_examples_draws_these(positives):
    one_kind = labelled(20, positives)
    drawn = BALANCED.sample_outer(one_kind, stream(0, 0, 0), (5,))
    assert drawn.labels.unique().tolist() == [int(positives > 0)]


def test_weights_and_balanced_batches_are_not_combined():
    with pytest.raises(InvalidValue, match="balanced = True must be false with weighted"):
        cross_entropy(weighted=True, balanced=True)
