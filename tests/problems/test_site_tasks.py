"""Tasks with rare positives at several sites: who trains, and on whose data models are tested."""

import pytest
import torch

from fedcso.core.errors import FedcsoError, UnknownName
from fedcso.datasets.tables.sites import Sites
from fedcso.problems import AUPRC, CrossEntropy
from fedcso.problems.scores import Scores, ranking_judge
from fedcso.problems.site_tasks import make_site_task, share_of_positives
from tests.rare import labelled, linear


def three_sites(*positives: int, names=("a", "b", "c")) -> Sites:
    parts = [[labelled(n, k, seed) for seed, k in enumerate(positives)] for n in (10, 4, 5)]
    return Sites(list(names), *parts, notes=["as they came"])


PROBLEM = AUPRC(Scores(linear))
LINEAR = ranking_judge(PROBLEM.scores)


def test_the_share_of_positives_is_that_of_all_sites_together():
    assert share_of_positives(three_sites(1, 2, 3)) == pytest.approx(6 / 30)


@pytest.mark.parametrize(("positives", "kind"), [(0, "negative"), (10, "positive")])
def test_sites_with_one_kind_of_examples_only_are_refused(positives, kind):
    parts = [labelled(10, positives)] * 3
    with pytest.raises(FedcsoError, match=f"^all 30 training examples are {kind}: check which labels"):
        make_site_task(PROBLEM, LINEAR, Sites(["a", "b", "c"], parts, parts, parts, []), "sites")


def test_each_site_trains_and_all_are_judged_together_and_at_home():
    sites = three_sites(1, 2, 3)
    task = make_site_task(PROBLEM, LINEAR, sites, "sites")
    assert task.clients == sites.train
    assert task.names == ["a", "b", "c"]
    assert task.notes == ["as they came"]
    assert torch.equal(task.test.whole.inputs, torch.cat([data.inputs for data in sites.test]))
    assert torch.equal(task.validation.labels, torch.cat([data.labels for data in sites.validation]))
    assert (task.test.clients, task.test.names) == (sites.test, sites.names)


def test_a_site_that_has_nothing_to_train_with_is_named():
    task = make_site_task(PROBLEM, LINEAR, three_sites(1, 0, 3), "sites")
    (_, note) = task.notes
    assert note.startswith("site b takes part in evaluation only: 0 of its 10 training examples are positive")
    assert len(make_site_task(CrossEntropy(Scores(linear)), LINEAR, three_sites(1, 0, 3), "sites").notes) == 1


def test_pooled_data_are_trained_on_in_one_place_and_judged_as_before():
    sites = three_sites(1, 0, 3)
    task = make_site_task(PROBLEM, LINEAR, sites, "pooled")
    ((inputs, labels),) = task.clients
    assert torch.equal(inputs, torch.cat([data.inputs for data in sites.train]))
    assert (int(labels.sum()), task.names) == (4, ["all"])
    assert "as many samples in each step as the 2 sites that train would together" in task.notes[-1]
    assert task.stands_for == 2
    assert task.test.clients == sites.test


def test_one_site_can_be_trained_on_alone():
    sites = three_sites(1, 2, 3)
    task = make_site_task(PROBLEM, LINEAR, sites, "b")
    assert task.clients == [sites.train[1]]
    assert (task.names, task.test.names) == (["b"], ["a", "b", "c"])


def test_a_site_that_is_not_there_is_refused_with_the_nearest_that_are():
    with pytest.raises(
        UnknownName, match=r"unknown train_on 'nort'; did you mean north\? \(known: north, pooled, sites"
    ):
        make_site_task(PROBLEM, LINEAR, three_sites(1, 2, 3, names=("north", "south", "west")), "nort")
