import numpy as np
import torch
from sklearn.metrics import average_precision_score

from fedcso.datasets.examples import Examples, pool_examples
from fedcso.fitting import trees, yardsticks
from fedcso.fitting.trees import fit_trees
from tests.fitting.small_sites import small_sites


def test_trees_learn_what_a_linear_model_can_not():
    sites = small_sites(1500)
    score = fit_trees(pool_examples(sites.train), pool_examples(sites.validation), seed=0)
    test = pool_examples(sites.test)
    scores = score(test.inputs.numpy())
    assert average_precision_score(test.labels, scores) > 0.4
    assert np.array_equal(scores, score(test.inputs.numpy()))


def test_without_both_labels_there_are_no_trees_and_without_validation_positives_there_are():
    some = small_sites().train[0]
    negative = Examples(some.inputs, torch.zeros_like(some.labels))
    assert fit_trees(negative, some, seed=0) is None
    assert fit_trees(some, negative, seed=0)(some.inputs.numpy()).shape == some.labels.shape


def test_of_very_many_rows_a_part_is_used_and_the_note_says_so(monkeypatch):
    monkeypatch.setattr(trees, "TREES", 10)
    monkeypatch.setattr(trees, "MOST_ROWS", 150)
    monkeypatch.setattr(yardsticks, "MOST_ROWS", 150)
    sites = small_sites()
    pooled, alone = yardsticks._trees(sites, sites.names, seed=0)
    assert pooled.note == f"on 150 of {sum(len(part.labels) for part in sites.train)} training rows"
    assert alone.note.startswith(f"on {150 // len(sites.names)} of ")
