import math

import numpy as np
import pytest

from fedcso.datasets.examples import pool_examples
from fedcso.fitting.contenders import compare
from fedcso.fitting.yardsticks import Yardstick
from tests.fitting.small_sites import small_sites


def by_column(number):
    return lambda examples: examples.inputs[:, number].double().numpy()


@pytest.fixture(scope="module")
def contenders():
    product = Yardstick("product", [lambda examples: examples.inputs[:, :2].prod(1).double().numpy()], False)
    column = Yardstick("column", [by_column(0)], True)
    several = Yardstick("several", [by_column(0), by_column(1)], False, "two of three sites")
    return compare([product, column, several], small_sites(), seed=0).contenders


def test_the_first_is_compared_with_each_of_the_others_on_the_same_resamples(contenders):
    chosen, column, several = contenders
    assert chosen.difference is None
    gap = chosen.average_precision.value - column.average_precision.value
    assert column.difference.value == pytest.approx(gap)
    assert column.difference.low > 0
    assert several.difference is None


def test_several_models_are_reported_by_their_mean_and_range_without_an_interval(contenders):
    several = contenders[2].average_precision
    test = pool_examples(small_sites().test)
    from sklearn.metrics import average_precision_score

    values = [average_precision_score(test.labels, by_column(n)(test)) for n in (0, 1)]
    assert several.value == pytest.approx(np.mean(values))
    assert math.isnan(several.low)
    assert f"{min(values):.3f} to {max(values):.3f}" in str(several)


def test_what_needs_the_data_in_one_place_is_marked(contenders):
    assert [one.needs_pooled_data for one in contenders] == [False, True, False]
    assert contenders[2].note == "two of three sites"
