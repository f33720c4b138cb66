from dataclasses import dataclass, field, replace

import pytest

from fedcso.core.task import Task
from fedcso.fitting.budget import BRIEF, LEAN, THOROUGH, Cost
from fedcso.fitting.objectives import OBJECTIVES, ORDINARY
from fedcso.fitting.search import Search
from fedcso.fitting.train import Trainer, Tried, make_task
from fedcso.runs.study import run_in_memory
from tests.fitting.small_sites import small_sites


def search(budget=LEAN, steps=40, seconds=1e9, nets=("linear",), seed=0, cost=Cost(1e9, 0.0)):  # noqa: B008 - frozen
    """Return a search in which no time is left to train the winner for longer, unless a cost is given."""
    said: list[str] = []
    trainer = Trainer(small_sites(), run_in_memory)
    planned = replace(budget, steps=steps, seconds=seconds, nets=nets, cost=cost)
    return Search(trainer, planned, seed, said.append), said


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
    assert said[0].startswith(f"first rung, 1 of {2 * len(OBJECTIVES)}: best so far is ")
    assert "validation average precision 0." in said[0]


def test_the_same_seed_gives_the_same_values_and_another_one_others():
    values = [[one.value for one in search(seed=seed)[0].find()] for seed in (0, 0, 7)]
    assert values[0] == values[1] != values[2]


def test_after_the_limit_only_the_best_so_far_is_trained_to_the_end():
    searching, _ = search(seconds=0.0)
    (chosen,) = searching.find()
    assert chosen.group.key == next(iter(OBJECTIVES))
    assert {one.total_steps for one in searching.tried["last"]} == {40}
    assert {rung: len({one.group for one in tried}) for rung, tried in searching.tried.items()} == {
        "first": 1,
        "second": 1,
        "last": 1,
    }
    assert searching.skipped > 0


def test_a_brief_search_has_few_objectives_and_goes_from_the_first_rung_to_the_last():
    searching, _ = search(BRIEF)
    ranked = searching.find()
    assert {one.group.key for one in searching.tried["first"]} == set(BRIEF.objectives)
    assert not searching.tried["second"]
    assert {one.total_steps for one in ranked} == {40}
    assert any(one.group.key in ORDINARY for one in ranked)


@dataclass
class Imagined:
    """Trains nothing: models become better up to some number of steps."""

    enough: int
    seconds: float = 0.0
    task: Task = field(default_factory=lambda: make_task("auprc", "linear", small_sites()).for_tuning())

    def train(self, name, group, rates, steps, seeds, evaluations):
        value = min(steps, self.enough) + (group.key == "auprc") / 2
        return [Tried(group, rate, steps, value, seeds[0], {}, steps <= self.enough, self.task, []) for rate in rates]


def search_imagined(enough: int, seconds: float):
    budget = replace(BRIEF, steps=40, seconds=seconds, nets=("linear",), cost=Cost(1.0, 0.0))
    searching = Search(Imagined(enough), budget, 0, lambda line: None)
    return searching, searching.find()


def test_the_winner_and_ordinary_federated_learning_are_trained_for_longer_while_the_winner_improves():
    searching, ranked = search_imagined(enough=200, seconds=1e6)
    assert [rung for rung in searching.tried if "long" in rung] == ["4 times as long", "16 times as long"]
    assert [(one.group.key, one.steps) for one in ranked[:2]] == [("auprc", 640), ("balanced", 640)]
    assert not searching.unfinished


def test_if_more_steps_do_not_help_the_shorter_run_is_chosen():
    searching, ranked = search_imagined(enough=40, seconds=1e6)
    assert [rung for rung in searching.tried if "long" in rung] == ["4 times as long"]
    assert ranked[0].steps == 40
    assert not searching.unfinished


def test_without_time_for_more_steps_a_winner_that_improves_is_unfinished():
    searching, ranked = search_imagined(enough=200, seconds=1000.0)
    assert [rung for rung in searching.tried if "long" in rung] == ["4 times as long"]
    assert ranked[0].steps == 160
    assert searching.unfinished
    assert searching.spent <= 1000.0


def test_thorough_searches_try_rates_around_the_best_with_more_seeds():
    searching, _ = search(THOROUGH, steps=20)
    searching.find()
    second = [one for one in searching.tried["second"] if one.group.key == searching.tried["second"][0].group.key]
    for decay in THOROUGH.decays:
        rates = sorted(one.rate for one in second if one.group.weight_decay == decay)
        assert rates == pytest.approx([rates[1] / 2, rates[1], rates[1] * 2])
    assert {len(one.traces) for one in second} == {2}
    assert {len(one.traces) for one in searching.tried["last"]} == {3}
