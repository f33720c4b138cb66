"""How what sites send is combined: robust rules against the definition, clipping, noise, what they guard against."""

import pytest
import torch

from fedcso.core.tree import average
from fedcso.federation.aggregation import AGGREGATES, Aggregation, clipped, update_norm

BEFORE = {"x": torch.zeros(3, dtype=torch.float64), "u": torch.ones(2, dtype=torch.float64)}


def sent(*values):
    return [{"x": torch.full((3,), float(v), dtype=torch.float64), "u": torch.ones(2).double() * v} for v in values]


def combined(rule, *values, trim=0.2, weights=None):
    return float(AGGREGATES[rule](sent(*values), weights or [1.0] * len(values), trim)["x"][0])


def test_the_mean_is_that_of_the_paper():
    trees, weights = sent(1, 2, 6), [1.0, 2.0, 1.0]
    for name, leaf in Aggregation()(BEFORE, trees, weights).items():
        assert torch.equal(leaf, average(trees, weights)[name])


@pytest.mark.parametrize("values", [(3,), (1, 5), (9, 1, 2), (4, 1, 100, 2), (5, 4, 3, 2, 1), tuple(range(10))])
def test_the_median_is_that_of_each_coordinate(values):
    assert combined("median", *values) == pytest.approx(float(torch.tensor(values).double().quantile(0.5)))


@pytest.mark.parametrize(
    ("trim", "expected"), [(0.0, (1 + 2 + 3 + 4 + 1000) / 5), (0.2, 3.0), (0.4, 3.0), (0.39, 3.0), (0.1, 202.0)]
)
def test_the_trimmed_mean_leaves_out_that_share_at_either_end(trim, expected):
    assert combined("trimmed_mean", 3, 1000, 1, 4, 2, trim=trim) == pytest.approx(expected)


def test_one_bad_site_moves_the_mean_as_far_as_it_likes_but_not_the_robust_ones():
    good = (1.0, 1.1, 0.9, 1.05)
    assert combined("mean", *good, 1e9) > 1e8
    for rule in ("median", "trimmed_mean"):
        assert min(good) <= combined(rule, *good, 1e9) <= max(good)
        assert min(good) <= combined(rule, *good, -1e9) <= max(good)


def test_clipping_keeps_the_direction_and_bounds_the_length_over_all_that_is_shared():
    (one,) = sent(4)
    length = update_norm(BEFORE, one)
    assert length == pytest.approx((3 * 16 + 2 * 9) ** 0.5)
    assert clipped(BEFORE, one, length * 1.001) is one
    short = clipped(BEFORE, one, 2.0)
    assert update_norm(BEFORE, short) == pytest.approx(2.0)
    assert torch.allclose(short["x"] / 4, torch.full((3,), 2.0 / length).double())


def test_what_the_server_has_nothing_of_yet_counts_from_zero():
    assert update_norm({"x": BEFORE["x"], "y": ()}, {"x": BEFORE["x"], "y": torch.ones(4)}) == pytest.approx(2.0)


def test_noise_has_the_deviation_that_the_accountant_is_told_and_differs_every_time():
    before = {"x": torch.zeros(200_000, dtype=torch.float64)}
    rule = Aggregation(clip_update=3.0, noise=2.0)
    first, second = (rule(before, [before] * 4, [1.0] * 4)["x"] for _ in range(2))
    assert float(first.std()) == pytest.approx(2.0 * 3.0 / 4, rel=0.02)
    assert abs(float(first.mean())) < 0.02
    assert not torch.equal(first, second)
