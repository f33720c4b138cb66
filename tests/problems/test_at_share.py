"""Average precision at a share of positives: what thinning gives on average, without throwing positives away."""

import math

import numpy as np
import pytest
import torch
from sklearn.metrics import average_precision_score

from fedcso.core.errors import InvalidValue
from fedcso.problems import PROBLEMS
from fedcso.problems.at_share import AT_SHARE, average_precision_at_share, judge_at_share
from fedcso.problems.scores import AVERAGE_PRECISION

RNG = np.random.default_rng(0)
LABELS = (np.arange(4000) < 1600).astype(int)
SCORES = RNG.normal(size=4000) + 1.2 * LABELS


def at(share: float) -> float:
    return average_precision_at_share(torch.tensor(SCORES), torch.tensor(LABELS), share)


@pytest.mark.parametrize("share", [0.02, 0.1])
def test_it_is_what_thinning_gives_on_average(share):
    positives, others = np.flatnonzero(LABELS), np.flatnonzero(1 - LABELS)
    kept = round(share / (1 - share) * len(others))
    thinned = []
    for _ in range(300):
        rows = np.concatenate([RNG.choice(positives, kept, replace=False), others])
        thinned.append(average_precision_score(LABELS[rows], SCORES[rows]))
    error = np.std(thinned) / math.sqrt(len(thinned))
    # Thinning has a bias of its own, of order 1/kept: the positive at a threshold always counts above it.
    assert at(share) == pytest.approx(np.mean(thinned), abs=4 * error + 1 / kept)
    assert np.std(thinned) > 5 * error  # a single thinning is much noisier than that


def test_at_the_datas_own_share_nothing_changes():
    assert at(LABELS.mean()) == pytest.approx(average_precision_score(LABELS, SCORES), abs=1e-12)


def test_repeating_positives_is_the_same_as_weighting_them():
    """Three copies of every positive have the share 3p / (1 + 2p)."""
    p = LABELS.mean()
    rows = np.concatenate([np.flatnonzero(LABELS)] * 3 + [np.flatnonzero(1 - LABELS)])
    expected = average_precision_score(LABELS[rows], SCORES[rows])
    assert at(3 * p / (1 + 2 * p)) == pytest.approx(expected, abs=1e-12)


def test_random_scores_have_the_share():
    labels = torch.tensor(LABELS)
    assert average_precision_at_share(torch.zeros(4000), labels, 0.03) == pytest.approx(0.03, abs=1e-12)


@pytest.mark.parametrize("labels", [[0, 0, 0], [1, 1, 1]])
def test_without_both_kinds_it_is_undefined(labels):
    assert math.isnan(average_precision_at_share(torch.arange(3.0), torch.tensor(labels), 0.1))


def test_scores_that_overflowed_have_no_order():
    assert math.isnan(average_precision_at_share(torch.tensor([1.0, torch.inf]), torch.tensor([0, 1]), 0.1))


def test_a_share_is_a_fraction():
    with pytest.raises(InvalidValue, match="share"):
        at(1.5)


def test_a_judge_selects_by_it_and_tells_the_data_own_too():
    task = PROBLEMS["auprc"]("linear", data="breast_cancer", clients=2)
    judge = judge_at_share(task.judge, 0.02)
    x = task.problem.init(torch.Generator().manual_seed(0))
    found, known = judge.measure(x, task.validation), task.judge.measure(x, task.validation)
    assert judge.select == AT_SHARE.name
    assert found[AVERAGE_PRECISION.name] == pytest.approx(known[AVERAGE_PRECISION.name], abs=1e-12)
    scores, labels = task.judge.rank(x, task.validation)
    assert found[AT_SHARE.name] == average_precision_at_share(scores, labels, 0.02) < found[AVERAGE_PRECISION.name]
