"""The result in plain words."""

from dataclasses import replace

import numpy as np
import pytest

from fedcso.fitting.result import Contender, Decision
from fedcso.fitting.words import summary, value_and_interval
from fedcso.reports.bootstrap import Measured
from fedcso.reports.wishes import Wishes
from tests.fitting.decisions import example


@pytest.fixture(scope="module")
def decision() -> Decision:
    return example()


def test_it_says_where_the_model_was_trained_and_what_its_alerts_do(decision):
    said = " ".join(summary(decision))
    assert said.startswith("The model was trained at 9 sites without moving their rows: 4,590 rows, 75 of them pos")
    first = decision.decisions.thresholds[0].test
    assert "On 1,530 test rows with 25 positives, which had no part in training or choosing" in said
    assert f"of 100 alerts about {100 * first.true_positives / first.alerts:.0f} are right" in said
    assert f"{100 * first.true_positives / first.positives:.0f} % of the positives are found" in said
    assert "With 25 positives such intervals tend to be too narrow." in said
    assert "calibrated (Platt scaling)" in said


def test_one_site_is_not_called_federated():
    decision = example(positives=(60,))
    said = " ".join(summary(decision))
    assert "trained at one site:" in said
    assert "too narrow" not in said


def test_the_best_of_both_kinds_of_others_is_named(decision):
    *_, local, pooled = summary(decision)
    assert local.startswith("Of the other methods that leave the data at the sites, the best is “FedAvg, class-")
    assert "the chosen model is better by" in local
    assert pooled.startswith("Of the other methods that need the data in one place, the best is “gradient boosting”")
    assert "the chosen model is worse by" in pooled


@pytest.mark.parametrize(
    ("difference", "said"),
    [
        (Measured(0.1, 0.05, 0.2, 25), "the chosen model is better by 0.100 (+0.050 to +0.200)."),
        (Measured(-0.1, -0.2, -0.05, 25), "the chosen model is worse by 0.100 (−0.200 to −0.050)."),
        (Measured(0.1, -0.1, 0.2, 25), "the test data can't tell which of the two is better"),
        (Measured(0.1, np.nan, np.nan, 3, "3 positives: too few for an interval"), "can't be told (3 positives"),
    ],
)
def test_a_difference_is_claimed_only_if_its_interval_excludes_0(decision, difference, said):
    other = Contender("other", Measured(0.5, 0.4, 0.6, 25), Measured(0.9, 0.8, 1, 25), False, difference)
    sentence = summary(replace(decision, contenders=[decision.contenders[0], other]))[-1]
    assert said in sentence


def test_a_wish_that_is_not_fulfilled_is_told():
    said = summary(example(Wishes(alerts=1, rows=1e6, recall=None)))
    assert any(sentence.startswith("At most 1 alerts in 1e+06 rows can't be reached") for sentence in said)


def test_few_positives_have_no_interval():
    few = Measured(1.0, np.nan, np.nan, 1, "1 positive: too few for an interval")
    assert value_and_interval(few) == "1.000 (1 positive: too few for an interval)"
    assert value_and_interval(replace(few, value=np.nan)).startswith("undefined")
    assert value_and_interval(Measured(-0.1, -0.2, 0.1, 25)) == "−0.100 (−0.200 to 0.100)"
