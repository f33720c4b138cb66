from dataclasses import replace

import pytest

from fedcso.fitting.budget import LEAN, THOROUGH
from fedcso.fitting.objectives import OBJECTIVES, ORDINARY
from fedcso.fitting.search import Search
from fedcso.fitting.train import Trainer
from fedcso.runs.study import play
from tests.fitting.small_sites import small_sites


def search(budget=LEAN, steps=40, seconds=1e9, nets=("linear",), seed=0):
    said: list[str] = []
    trainer = Trainer(small_sites(), play)
    return Search(trainer, nets, replace(budget, steps=steps, seconds=seconds), seed, said.append), said


@pytest.fixture(scope="module")
def finished():
    searching, said = search(nets=("linear", "mlp"))
    return searching, searching.find(), said


def test_everything_is_tried_for_the_same_steps_in_the_first_rung(finished):
    searching, _, _ = finished
    first = searching.tried["first"]
    assert {(one.group.key, one.group.net) for one in first} == {(k, n) for k in OBJECTIVES for n in ("linear", "mlp")}
    assert {one.total_steps for one in first if one.group.first_rate is None} == {10}


def test_those_that_go_on_are_the_best_and_ordinary_federated_learning(finished):
    searching, ranked, _ = finished
    by_group: dict = {}
    for one in searching.tried["first"]:
        place = (one.group.key, one.group.net)
        by_group[place] = max(one.value, by_group.get(place, 0.0))
    order = sorted(by_group, key=lambda place: -by_group[place])
    went_on = {(one.group.key, one.group.net) for one in searching.tried["second"]}
    assert set(order[:4]) <= went_on
    assert any(key in ORDINARY for key, _ in went_on)
    assert any(one.group.key in ORDINARY for one in searching.tried["last"])
    assert [one.value for one in ranked] == sorted((one.value for one in ranked), reverse=True)


def test_it_says_what_leads(finished):
    _, _, said = finished
    assert said[0].startswith("first rung, 1 of 14: best so far is ")
    assert "validation average precision 0." in said[0]


def test_the_same_seed_gives_the_same_values_and_another_one_others():
    values = [[one.value for one in search(seed=seed)[0].find()] for seed in (0, 0, 7)]
    assert values[0] == values[1] != values[2]


def test_after_the_limit_nothing_more_is_started_and_the_best_so_far_is_returned():
    searching, _ = search(seconds=0.0)
    ranked = searching.find()
    assert [one.group.key for one in ranked] == [next(iter(OBJECTIVES))]
    assert searching.skipped > 0


def test_thorough_searches_try_rates_around_the_best_with_more_seeds():
    searching, _ = search(THOROUGH, steps=20)
    searching.find()
    second = [one for one in searching.tried["second"] if one.group.key == searching.tried["second"][0].group.key]
    for decay in (0.0, 1e-3):
        rates = sorted(one.rate for one in second if one.group.weight_decay == decay)
        assert rates == pytest.approx([rates[1] / 2, rates[1], rates[1] * 2])
    assert {len(one.traces) for one in second} == {2}
    assert {len(one.traces) for one in searching.tried["last"]} == {3}
