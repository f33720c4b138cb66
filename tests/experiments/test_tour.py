"""The tour: sentences follow the numbers, whatever they are, and patients are as described."""

import itertools

import pytest
import torch

from fedcso.core.errors import InvalidValue
from fedcso.core.intervals import mean_and_interval
from fedcso.experiments import tour_bias, tour_rare
from fedcso.experiments.tour_bias import OFF, contenders, tell_bias
from fedcso.experiments.tour_patients import HOSPITALS, draw_patients
from fedcso.experiments.tour_rare import ALONE, BEST_ALONE, FEDERATED, OURS, tell_rare
from fedcso.experiments.tour_settings import BiasSizes, settings
from fedcso.experiments.tour_words import Verdict, join, judge

SIZES = BiasSizes()
SEEDS = range(3)


def bias_rows(off):
    """Rows of runs that end this far away."""
    titles = [one.title for one in contenders(SIZES)]
    return [
        {
            "estimator": title,
            "seed": seed,
            "predicted": 1.0,
            "round": 1,
            "inner_samples": 8,
            OFF.name: off[place] + seed,
        }
        for place, title in enumerate(titles)
        for seed in SEEDS
    ]


def rare_rows(values):
    about = {"sites": 4, "positives": 50, "rows": 5000}
    return [
        about | {"way": way, "seed": seed, "value": value + 0.01 * seed}
        for way, value in values.items()
        for seed in SEEDS
    ]


def test_a_verdict_is_that_of_the_paired_interval():
    assert judge([0.5, 0.7], [0.4, 0.6]) is Verdict.AHEAD
    assert judge([0.5, 0.7], [0.4, 0.6], higher_is_better=False) is Verdict.BEHIND
    assert judge([0.5, 0.7], [0.5, 0.7]) is Verdict.LEVEL
    assert judge([0.9], [0.1]) is Verdict.LEVEL, "one seed decides nothing"
    a, b = [0.5, 0.9, 0.7], [0.4, 0.6, 0.9]
    mean, half = mean_and_interval([x - y for x, y in zip(a, b, strict=True)])
    assert (judge(a, b) is Verdict.LEVEL) == (abs(mean) <= half)


def test_an_enumeration():
    assert [join(["a"]), join(["a", "b"]), join(["a", "b", "c"])] == ["a", "a and b", "a, b and c"]


@pytest.mark.parametrize(
    ("off", "said"),
    [
        (
            (28, 17, 5, 1, 0.4),
            ["ends 6 % from the right answer", "ends 29 % away", "down to 1.4 % with the same 8 measurements."],
        ),
        ((28, 17, 5, 1, 3), ["measurements, though not the 2 % of 64"]),
        ((28, 17, 5, 1, 9), ["Extrapolation from the same 8 is worse here (10 %)"]),
        (
            (5, 17, 5, 1, 5),
            ["measurements makes no clear", "makes no clear difference (6 %)"],
        ),
        ((2, 17, 5, 5, 1), ["not clearly farther than with 64", "happens to end nearer here (3 %)"]),
        ((28, 17, 2, 5, 1), ["too short to show the bias"]),
    ],
)
def test_the_first_sentence_says_what_the_numbers_say(off, said):
    sentence = tell_bias(bias_rows(off), SIZES).sentence
    for part in said:
        assert part in sentence


def test_the_second_sentence_says_what_the_numbers_say():
    others = ["FedAvg", "FedAvg with balanced batches", ALONE]
    for places in itertools.product([0.3, 0.6, 0.8], repeat=3):
        values = {
            "FedAvg": places[0],
            "FedAvg with balanced batches": places[1],
            OURS: 0.6,
            ALONE: places[2],
            BEST_ALONE: 0.5,
        }
        sentence = tell_rare(rare_rows(values)).sentence
        words = {0.3: "ahead of", 0.6: "not clearly different from", 0.8: "behind"}
        first, _, advice = sentence.partition(". ")
        for way, place in zip(others, places, strict=True):
            before = first[: first.index(f"{way} ({place + 0.01:.2f})")]
            assert max(words.values(), key=before.rfind) == words[place], sentence
        assert ("do better alone" in advice) == (places[2] == 0.8)
        assert ("better choice here" in advice) == (0.8 in places[:2])
        assert ("made for rare positives" in advice) == (places[:2] == (0.3, 0.3))


def test_the_table_has_every_way_and_its_mean():
    values = {way: 0.1 * place for place, way in enumerate([*FEDERATED, ALONE, BEST_ALONE], start=1)}
    table = tell_rare(rare_rows(values)).table
    assert [row["way to learn"] for row in table] == list(values)
    assert [row["average precision on test data"].mean for row in table] == pytest.approx(
        [value + 0.01 for value in values.values()]
    )


def test_runs_settle_where_theory_says(tmp_path):
    from fedcso.runs.study import run_in_memory

    sizes = BiasSizes(rounds=60, evaluations=1)
    rows = tour_bias.run_bias(run_in_memory, sizes, [0, 1])
    ends = [row for row in rows if row["round"] == sizes.rounds]
    assert len(ends) == 2 * len(contenders(sizes))
    for row in ends:
        assert row[OFF.name] == pytest.approx(row["predicted"], abs=2.0)
    assert {row["estimator"]: row["predicted"] for row in ends}["extrapolated, m = 8"] == pytest.approx(0, abs=1e-9)


def test_patients_are_positive_by_their_ratio_and_nothing_else():
    sites = draw_patients(seed=3)
    assert [int(part.labels.sum()) for part in sites.train] == [
        round(round(0.7 * one.patients) * one.share) for one in HOSPITALS
    ]
    rows, labels = (torch.cat([getattr(part, name) for part in sites.test]) for name in ("inputs", "labels"))
    apart = (rows[:, 0] - rows[:, 1]).abs()
    assert apart[labels == 1].median() > 2.5 * apart[labels == 0].median()
    for column in (0, 1, 2):
        assert rows[labels == 1, column].mean().abs() < 0.35
    assert not torch.equal(rows, torch.cat([part.inputs for part in draw_patients(seed=4).test]))


def test_seeds_are_a_count():
    assert settings(False).seeds == (0, 1, 2, 3, 4)
    with pytest.raises(InvalidValue, match="seeds = 0"):
        settings(True, seeds=0)


def test_test_rows_choose_nothing(monkeypatch):
    """The runs see training rows in the place of test rows."""
    seen = []
    unit = tour_rare._unit

    def watch(*arguments):
        seen.append(unit(*arguments))
        return seen[-1]

    monkeypatch.setattr(tour_rare, "_unit", watch)
    from fedcso.runs.study import run_in_memory

    rows = tour_rare.run_rare(run_in_memory, settings(True).rare, [0])
    data = draw_patients(0)
    assert len(rows) == len(FEDERATED) + 2
    for one in seen:
        assert len(one.task.test.labels) == sum(len(part.labels) for part in data.train)
        assert len(one.task.validation.labels) == sum(len(part.labels) for part in data.validation)
