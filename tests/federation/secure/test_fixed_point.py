"""Fixed-point numbers: exact sums, a stated precision, and no overflow that goes unnoticed."""

import math
from fractions import Fraction

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fedcso.core.errors import InvalidValue
from fedcso.core.tree import leaves
from fedcso.federation.secure.fixed_point import (
    SUM_BITS,
    ImpossibleSum,
    Overflow,
    Ranges,
    decode,
    encode,
    exponent,
    flatten,
    unflatten,
)

LIMITS = st.floats(1e-6, 1e9)
SITES = st.integers(2, 300)


def tree_of(*numbers, dtype=torch.float64):
    return {"shared": {"x": torch.tensor(numbers, dtype=dtype)}}


@given(LIMITS, SITES)
def test_the_sum_of_all_sites_fits_and_no_smaller_step_would(limit, sites):
    step = Fraction(2) ** exponent(limit, sites)
    assert sites * Fraction(limit) / step <= 2**SUM_BITS < sites * Fraction(limit) / (step / 2)


@given(
    LIMITS, st.lists(st.floats(-1, 1), min_size=1, max_size=6), st.lists(st.floats(0.001, 1), min_size=1, max_size=5)
)
def test_a_mean_is_as_precise_as_stated(limit, fractions, weights):
    values = [fraction * limit for fraction in fractions]
    sites, ranges = len(weights), Ranges(limit)
    encoded = [encode(tree_of(*values), ranges, sites, weight) for weight in weights]
    total = unflatten(encoded[0], sum(flatten(one) for one in encoded))
    mean = decode(total, [torch.float64], ranges, sites, sum(weights), sites)
    allowed = sites * math.ldexp(1, exponent(limit, sites)) / (2 * sum(weights)) + 1e-14 * limit
    for found, value in zip(mean["shared"]["x"].tolist(), values, strict=True):
        assert abs(found - value) <= allowed


@given(LIMITS, SITES, st.floats(1.0, 1e300, exclude_min=True), st.booleans())
def test_an_overflow_is_noticed_and_named(limit, sites, factor, negative):
    value = (-1 if negative else 1) * limit * factor
    with pytest.raises(Overflow, match="a number of x is outside the range"):
        encode(tree_of(0.0, value), Ranges(limit), sites)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_not_a_number_is_an_overflow(value):
    with pytest.raises(Overflow):
        encode(tree_of(value), Ranges(1.0), 3)


@given(LIMITS, SITES, st.floats(1.001, 15), st.booleans())
def test_a_sum_that_no_updates_have_is_noticed(limit, sites, factor, negative):
    largest = int(math.ldexp(limit, -exponent(limit, sites)) * sites)
    total = {"shared": {"x": torch.tensor([(-1 if negative else 1) * int(largest * factor) + sites])}}
    if abs(int(total["shared"]["x"])) <= largest + sites:
        return
    with pytest.raises(ImpossibleSum, match="sum of x"):
        decode(total, [torch.float64], Ranges(limit), sites, float(sites), sites)


def test_each_leaf_has_the_range_of_the_longest_path_that_leads_to_it():
    ranges = Ranges.parse("8, u = 1e9, x.bias=0.5")
    assert [ranges.of(path) for path in ("x", "x.weight", "x.bias", "x.bias.0", "u", "u.0", "units", "loss")] == [
        *(8, 8, 0.5, 0.5, 1e9, 1e9, 8, 8)
    ]
    tree = {"shared": {"x": {"weight": torch.ones(1), "bias": torch.ones(1)}}}
    with pytest.raises(Overflow, match=r"a number of x.bias is outside the range ±0.5"):
        encode(tree, ranges, 3)


@pytest.mark.parametrize("text", ["", "0", "-1", "nan", "inf", "x", "x=", "=3", "x=1;u=2", "1,,2"])
def test_other_texts_are_no_ranges(text):
    with pytest.raises(InvalidValue, match="secure_range"):
        Ranges.parse(text)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int64])
def test_all_leaves_come_back_in_their_types_and_shapes(dtype):
    tree = {"shared": {"x": [torch.ones(2, 3, dtype=dtype)], "u": ()}, "scalars": {"loss": torch.tensor(2.0).to(dtype)}}
    encoded = encode(tree, Ranges(10.0), 4)
    back = decode(unflatten(encoded, flatten(encoded)), [leaf.dtype for leaf in leaves(tree)], Ranges(10.0), 4, 1.0, 1)
    assert torch.equal(back["shared"]["x"][0], tree["shared"]["x"][0])
    assert torch.equal(back["scalars"]["loss"], tree["scalars"]["loss"])
    assert back["shared"]["u"] == ()
