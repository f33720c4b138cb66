"""Classification after adaptation is that of evaluation; what an image is classified with matters, or does not."""

from functools import partial

import pytest
import torch

from fedcso.core.streams import stream
from fedcso.core.tree import map_leaves
from fedcso.datasets.examples import Examples
from fedcso.models.conv4 import Conv4
from fedcso.problems import transduction
from fedcso.problems.maml import MAML, judge_adapted
from fedcso.problems.transduction import adapt_and_classify
from tests.few_characters import few_characters

WAYS, SHOTS = 3, 2
PROBLEM = MAML(partial(Conv4, WAYS, filters=4), ways=WAYS, queries=4)
X = map_leaves(lambda leaf: leaf.double() + 0.01, PROBLEM.init(stream(0, 0, 0)))
EPISODE = PROBLEM.episodes(few_characters().test, 1, SHOTS, stream(1, 0, 0))
SUPPORT = Examples(*(PROBLEM.label_support(EPISODE.eta[0].double())))
QUERIES = EPISODE.xi.images[0].double()


def test_it_is_what_evaluation_measures():
    probabilities = adapt_and_classify(PROBLEM, X, SUPPORT, QUERIES, together=True)
    right = (probabilities.argmax(1) == PROBLEM.query_labels(QUERIES)).double().mean()
    chosen = probabilities[torch.arange(len(QUERIES)), PROBLEM.query_labels(QUERIES)]
    double = EPISODE._replace(xi=EPISODE.xi._replace(images=EPISODE.xi.images.double()), eta=EPISODE.eta.double())
    measured = judge_adapted(PROBLEM).measure(X, double)
    assert measured["accuracy"].item() == right.item()
    torch.testing.assert_close(measured["loss"], -chosen.log().mean())


def test_classes_may_have_different_numbers_of_support_images_in_any_order():
    """An image that is there twice counts twice: the loss is the mean over all images."""
    order = torch.tensor([3, 0, 4, 1, 5, 2])
    shuffled = Examples(SUPPORT.inputs[order], SUPPORT.labels[order])
    expected = adapt_and_classify(PROBLEM, X, SUPPORT, QUERIES)
    torch.testing.assert_close(adapt_and_classify(PROBLEM, X, shuffled, QUERIES), expected)
    fewer = Examples(SUPPORT.inputs[:-1], SUPPORT.labels[:-1])
    assert (adapt_and_classify(PROBLEM, X, fewer, QUERIES) - expected).abs().max() > 1e-4


def test_a_prediction_depends_on_other_images_only_if_they_are_classified_together():
    few = QUERIES[:5]
    together, alone = (adapt_and_classify(PROBLEM, X, SUPPORT, QUERIES, together)[:5] for together in (True, False))
    assert (adapt_and_classify(PROBLEM, X, SUPPORT, few, together=True) - together).abs().max() > 1e-4
    assert torch.equal(adapt_and_classify(PROBLEM, X, SUPPORT, few), alone)
    assert torch.equal(adapt_and_classify(PROBLEM, X, SUPPORT, few[:1]), alone[:1])
    assert (together - alone).abs().max() > 1e-4


def test_images_of_one_class_are_not_recognised_together_but_on_their_own():
    """Batch norm takes away what the images of a batch have in common, and here that is their class."""
    problem = MAML(partial(Conv4, WAYS, filters=16), ways=WAYS, queries=4, test_steps=20)
    x = problem.init(stream(0, 0, 0))
    rights = {}
    for together in (False, True):
        rights[together] = 0
        for label in range(WAYS):
            images = QUERIES[label * problem.queries : (label + 1) * problem.queries].float()
            support = Examples(SUPPORT.inputs.float(), SUPPORT.labels)
            found = adapt_and_classify(problem, x, support, images, together).argmax(1)
            rights[together] += int((found == label).sum())
    assert rights[False] == len(QUERIES)
    assert rights[True] < 2 / 3 * len(QUERIES)


def test_on_its_own_an_image_is_in_a_batch_with_the_support_images():
    y = PROBLEM.adapt_to(X, SUPPORT, PROBLEM.test_steps)
    with torch.no_grad():
        expected = PROBLEM.network.apply(y, torch.cat([SUPPORT.inputs, QUERIES[7:8]]))[-1].softmax(0)
    assert torch.equal(adapt_and_classify(PROBLEM, X, SUPPORT, QUERIES)[7], expected)


@pytest.mark.parametrize(("most", "sizes"), [(12, [12]), (6, [6, 6]), (5, [4, 4, 4])])
def test_very_many_images_are_divided_into_equal_batches(monkeypatch, most, sizes):
    monkeypatch.setattr(transduction, "MOST", most)
    seen = []
    apply = PROBLEM.network.apply

    def watch(y, images):
        seen.append(images)
        return apply(y, images)

    monkeypatch.setattr(PROBLEM.network, "apply", watch)
    probabilities = adapt_and_classify(PROBLEM, X, SUPPORT, QUERIES, together=True)
    batches = seen[PROBLEM.test_steps :]
    assert [len(images) for images in batches] == sizes
    y = PROBLEM.adapt_to(X, SUPPORT, PROBLEM.test_steps)
    for images in batches:
        places = [next(n for n, query in enumerate(QUERIES) if torch.equal(query, image)) for image in images]
        torch.testing.assert_close(probabilities[places], apply(y, images).softmax(1).detach())
        assert places == sorted(places)
        assert len(sizes) == 1 or places != list(range(places[0], places[0] + len(places)))  # drawn at random
