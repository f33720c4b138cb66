"""Counts of scores from sites: right where sites are honest, and refused where they are impossible."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

pytest.importorskip("flwr", reason="needs Flower: pip install 'fedcso[flower]'")

from fedcso.core.judge import Judge
from fedcso.datasets.examples import Examples
from fedcso.federation import rounds
from fedcso.federation.counting import MOST_ROWS, PARTS, SiteCounts, count_parts, read_counts
from fedcso.federation.decisions import as_rows
from fedcso.federation.exchange import NO_ANSWER, Response
from fedcso.federation.options import Federation
from fedcso.federation.remote_problem import SiteInfo
from fedcso.federation.request import COUNTS, Order
from fedcso.federation.rounds import Connection
from fedcso.federation.wire import Unreadable, pack
from fedcso.reports.score_counts import fixed_bins

RANKS = Judge(rank=lambda x, data: (data.inputs[:, 0] * x, data.labels))
X = torch.tensor(2.0)
BINS = len(fixed_bins().centres)


def rows(number, seed=0):
    rng = np.random.default_rng(seed)
    return Examples(torch.tensor(rng.normal(size=(number, 1))), torch.tensor(rng.integers(0, 2, number)))


def answer(validation=40, test=30, smallest=1):
    return count_parts(RANKS, X, {"validation": rows(validation), "test": rows(test, 1)}, smallest)


def test_what_a_site_sends_is_what_counting_its_rows_gives():
    found = read_counts(*answer(), train_rows=100)
    for part, data in {"validation": rows(40), "test": rows(30, 1)}.items():
        expected = fixed_bins().count(2 * data.inputs[:, 0].numpy(), data.labels.numpy())
        np.testing.assert_array_equal(found[part].negatives, expected.negatives)
        np.testing.assert_array_equal(found[part].positives, expected.positives)


def test_a_site_sends_bins_with_rows_only_and_nothing_but_whole_numbers():
    said, tree = answer()
    assert said == {"too_few": []}
    assert {leaf.dtype for part in tree.values() for leaf in part.values()} == {torch.int64}
    for part in tree.values():
        assert (part["negatives"] + part["positives"] > 0).all()


@pytest.mark.parametrize(("number", "counted"), [(40, True), (9, False), (0, False)])
def test_the_site_itself_withholds_counts_of_few_rows(number, counted):
    said, tree = answer(validation=number, smallest=10)
    assert ("validation" in tree) == counted
    assert said == {"too_few": [] if counted else ["validation"]}
    assert set(read_counts(said, tree, train_rows=100)) == {"test", *tree}


def test_no_small_count_leaves_a_site_of_either_label():
    assert answer(smallest=18)[0] == {"too_few": ["test"]}  # 30 rows, but fewer than 18 of one label
    said, tree = answer(validation=400, test=300, smallest=10)
    for name in ("negatives", "positives"):
        numbers = torch.cat([part[name] for part in tree.values()])
        assert not ((numbers > 0) & (numbers < 10)).any()
    found = read_counts(said, tree, train_rows=1000)
    assert found["validation"].positives.sum() == rows(400).labels.sum()


def test_groups_of_rows_rank_nearly_as_the_rows_do():
    from sklearn.metrics import roc_auc_score

    data = rows(2000)
    labels = (data.inputs[:, 0] + torch.tensor(np.random.default_rng(2).normal(size=2000)) > 1.5).long()
    part = Examples(data.inputs, labels)
    exact, coarse = (
        as_rows([SiteCounts("a", read_counts(*count_parts(RANKS, X, dict.fromkeys(PARTS, part), k), None))], "test")
        for k in (1, 10)
    )
    assert len(exact.labels) == len(coarse.labels)
    found, expected = (roc_auc_score(held.labels, held.scores) for held in (coarse, exact))
    assert found == pytest.approx(expected, abs=0.01)
    assert found != expected


def with_part(**changes):
    """Counts of validation rows with other numbers."""

    def change(said, tree):
        lists = {name: value if isinstance(value, str) else torch.tensor(value) for name, value in changes.items()}
        return said, tree | {"validation": tree["validation"] | lists}

    return change


LIES = {
    "not those of validation and test": [
        lambda said, tree: (said, {}),
        lambda said, tree: (said, tree | {"train": tree["test"]}),
        lambda said, tree: ({"too_few": ["test"]}, tree),
        lambda said, tree: ({"too_few": "everything"}, tree),
    ],
    "incomplete": [
        lambda said, tree: ({}, tree),
        lambda said, tree: ({"too_few": 3}, tree),
        lambda said, tree: ({"too_few": [1]}, tree),
        lambda said, tree: (said, torch.ones(3)),
        lambda said, tree: (said, tree | {"test": {"bins": tree["test"]["bins"]}}),
        lambda said, tree: (said, tree | {"test": torch.ones(3)}),
    ],
    "three equally long lists of whole numbers": [
        with_part(bins=[1.0, 2.0], negatives=[1, 1], positives=[0, 0]),
        with_part(bins=[1, 2], negatives=[1.0, float("nan")], positives=[0, 0]),
        with_part(bins=[True, True], negatives=[1, 1], positives=[0, 0]),
        with_part(bins=[1, 2, 3], negatives=[1, 1], positives=[0, 0]),
        with_part(bins=[[1, 2]], negatives=[[1, 1]], positives=[[0, 0]]),
        with_part(bins=1, negatives=1, positives=1),
        lambda said, tree: (said, tree | {"validation": dict.fromkeys(("bins", "negatives", "positives"))}),
    ],
    "don't exist": [
        with_part(bins=[-1, 2], negatives=[1, 1], positives=[0, 0]),
        with_part(bins=[1, BINS], negatives=[1, 1], positives=[0, 0]),
        with_part(bins=[2, 2], negatives=[1, 1], positives=[0, 0]),
        with_part(bins=[3, 2], negatives=[1, 1], positives=[0, 0]),
        with_part(bins=[0, 2**63 - 1, -2, 5], negatives=[1, 1, 1, 1], positives=[0, 0, 0, 0]),  # differences overflow
    ],
    "negative, or more than the 100": [
        with_part(bins=[1, 2], negatives=[5, 1], positives=[0, -1]),
        with_part(bins=[1, 2], negatives=[5, 101], positives=[0, 0]),
        with_part(bins=[1, 2], negatives=[5, 2**63 - 1], positives=[0, 2]),
    ],
    "empty bins, or more than the 100": [
        with_part(bins=[1, 2], negatives=[5, 0], positives=[0, 0]),
        with_part(bins=[1, 2], negatives=[50, 20], positives=[30, 1]),
    ],
}


@pytest.mark.parametrize(
    ("reason", "lie"),
    [(reason, lie) for reason, lies in LIES.items() for lie in lies],
    ids=lambda value: str(value)[:20],
)
def test_an_impossible_answer_is_refused(reason, lie):
    with pytest.raises(Unreadable, match=reason):
        read_counts(*lie(*answer()), train_rows=100)


def test_no_site_has_more_rows_than_the_coordinator_can_hold():
    lie = with_part(bins=[1], negatives=[MOST_ROWS + 1], positives=[0])
    for train_rows in (None, 10**12):
        with pytest.raises(Unreadable, match=f"more than the {MOST_ROWS}"):
            read_counts(*lie(*answer()), train_rows)


# --------------------------------------------------------------------------------------- the coordinator


def test_every_site_is_named_and_its_bytes_are_counted(monkeypatch, caplog):
    lie = with_part(bins=[BINS], negatives=[1], positives=[0])
    contents = {
        0: pack({"site": "honest", **answer()[0]}, answer()[1]),
        1: pack({}, lie(*answer())[1]),
        2: pack({"refused": "it raised ValueError; its own log says why"}),
        3: None,
    }

    def exchange(grid, kind, sent, seconds):
        assert kind == COUNTS
        return {
            node: Response(contents[node], "" if contents[node] else NO_ANSWER, 1.0, 10, 100 if contents[node] else 0)
            for node in sent
        }

    monkeypatch.setattr(rounds, "exchange", exchange)
    names = ["honest", "lying", "broken", "silent", "gone"]
    roster = SimpleNamespace(
        names=names,
        nodes={n: n for n in range(4)},
        about=[SiteInfo(100, True, True, True) for _ in names],
        refresh=lambda: None,
    )
    found = Connection(None, Federation(sites=",".join(names)), roster, None).count(Order({}, names), X)
    assert [one.site for one in found] == names
    assert [one.bytes_up for one in found] == [100, 100, 100, 0, 0]
    assert [bool(one.counts) for one in found] == [True, False, False, False, False]
    assert found[0].rows("validation") == (40, int(rows(40).labels.sum()))
    assert [one.why_not for one in found[2:]] == [
        "it raised ValueError; its own log says why",
        NO_ANSWER,
        "not connected",
    ]
    for name in names[1:]:
        assert f"the scores of site {name} are not counted" in caplog.text
