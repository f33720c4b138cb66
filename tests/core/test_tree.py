"""Arithmetic on pytrees."""

from typing import NamedTuple

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fedcso.core.tree import (
    add_scaled,
    average,
    index,
    is_finite,
    leaves,
    log_mix,
    map_leaves,
    mix,
    named_leaves,
    nbytes,
    norm,
    numel,
    split,
    stack,
    subtract,
    unflatten_like,
    zeros_like,
)
from tests.helpers import assert_close


class Pair(NamedTuple):
    first: torch.Tensor
    second: torch.Tensor


def nested(offset: float = 0.0):
    """Return a tree that contains every kind of node."""
    values = offset + torch.arange(10, dtype=torch.float64)
    return {
        "bare": values[0],
        "pair": Pair(values[1:3], values[3:5].reshape(1, 2)),
        "list": [values[5:6], (values[6:8], values[8:10])],
        "empty": (),
    }


numbers = st.floats(-1e3, 1e3)
weights = st.floats(1e-3, 1e3)


def test_leaves_are_named_by_their_path_in_order():
    tree = nested()
    names = [name for name, _ in named_leaves(tree)]
    assert names == ["bare", "pair.first", "pair.second", "list.0", "list.1.0", "list.1.1"]
    assert named_leaves(torch.ones(1))[0][0] == ""
    assert_close(leaves(tree), [leaf for _, leaf in named_leaves(tree)], tolerance=0.0)


def test_mapping_keeps_the_structure():
    doubled = map_leaves(lambda leaf: 2 * leaf, nested())
    assert isinstance(doubled["pair"], Pair)
    assert isinstance(doubled["list"][1], tuple)
    assert doubled["empty"] == ()
    assert_close(doubled, add_scaled(nested(), nested(), 1.0))


def test_mapping_over_trees_of_different_shape_fails():
    with pytest.raises(ValueError, match="zip"):
        map_leaves(torch.add, [torch.ones(1)], [torch.ones(1), torch.ones(1)])


def test_unflatten_is_the_inverse_of_leaves():
    tree = nested()
    assert_close(unflatten_like(nested(offset=5), leaves(tree)), tree, tolerance=0.0)


def test_split_is_the_inverse_of_stack():
    trees = [nested(offset) for offset in range(6)]
    for part, tree in zip(split(stack(trees), (6,)), trees, strict=True):
        assert_close(part, tree, tolerance=0.0)
    twice = stack([stack(trees[:3]), stack(trees[3:])])
    for part, tree in zip(split(twice, (2, 3)), trees, strict=True):
        assert_close(part, tree, tolerance=0.0)
    assert_close(index(twice, (1, 2)), trees[5], tolerance=0.0)
    assert split((), (2, 3)) == [()] * 6


def test_sizes_are_those_of_all_leaves():
    tree = {"double": torch.zeros(2, 3, dtype=torch.float64), "single": torch.zeros(5)}
    assert numel(tree) == 2 * 3 + 5
    assert nbytes(tree) == 2 * 3 * 8 + 5 * 4


def test_zeros_and_difference():
    assert_close(subtract(nested(), nested()), zeros_like(nested()), tolerance=0.0)


@given(numbers, numbers, st.floats(0, 1))
def test_mix_is_a_weighted_mean(old, new, weight):
    mixed = mix(torch.tensor([old]).double(), torch.tensor([new]).double(), weight)
    expected = (1 - weight) * torch.tensor([old]).double() + weight * torch.tensor([new]).double()
    assert_close(mixed, expected)


@given(numbers, numbers)
def test_log_mix_is_mix_of_exponentials_and_never_overflows(old, new):
    a, b = torch.tensor([old]).double(), torch.tensor([new]).double()
    for weight in (0.3, torch.tensor([0.3], dtype=torch.float64)):
        assert_close(log_mix(a / 10, b / 10, weight), mix((a / 10).exp(), (b / 10).exp(), 0.3).log())
        assert_close(log_mix(a + 1e6, b + 1e6, weight), log_mix(a, b, weight) + 1e6, tolerance=1e-9)
    assert torch.equal(log_mix(a, b, 1.0), b)


@given(numbers, numbers)
def test_mix_is_exact_at_its_ends(old, new):
    a, b = torch.tensor([old]), torch.tensor([new])
    assert torch.equal(mix(a, b, 1.0), b)
    assert torch.equal(mix(a, b, 0.0), a)


def test_weights_of_a_grid_align_with_the_first_axis():
    old, new = torch.zeros(2, 2, dtype=torch.float64), torch.ones(2, 2, dtype=torch.float64)
    grid = torch.tensor([0.25, 0.5])
    expected = [[0.25, 0.25], [0.5, 0.5]]
    assert mix(old, new, grid).tolist() == expected
    assert add_scaled(old, new, grid).tolist() == expected


# ------------------------------------------------------------------------------------------ average

some_weighted_numbers = st.lists(st.tuples(numbers, weights), min_size=1, max_size=8)


def vectors(pairs):
    return [{"x": torch.tensor([value, -value], dtype=torch.float64)} for value, _ in pairs]


@given(some_weighted_numbers)
def test_average_is_the_weighted_mean(pairs):
    total = sum(weight for _, weight in pairs)
    expected = sum(value * weight / total for value, weight in pairs)
    result = average(vectors(pairs), [weight for _, weight in pairs])
    assert_close(result["x"], torch.tensor([expected, -expected], dtype=torch.float64), tolerance=1e-10)


@given(some_weighted_numbers, weights)
def test_average_does_not_depend_on_the_scale_of_weights(pairs, scale):
    result = average(vectors(pairs), [weight for _, weight in pairs])
    assert_close(average(vectors(pairs), [scale * weight for _, weight in pairs]), result, tolerance=1e-10)


@given(numbers, st.lists(weights, min_size=1, max_size=8))
def test_average_of_equals_is_that(value, weights):
    tree = nested(offset=value)
    assert_close(average([tree] * len(weights), weights), tree)


def test_average_of_single_precision_is_made_in_double_precision():
    """In single precision, adding 1 to 2²⁵ would have no effect."""
    parts = [torch.tensor([value]) for value in (2.0**25, 1.0, -(2.0**25))]
    result = average(parts, [1.0, 1.0, 1.0])
    assert result.dtype == torch.float32
    assert result.item() == pytest.approx(1 / 3, rel=1e-6)


@pytest.mark.parametrize("bad", [torch.nan, torch.inf, -torch.inf])
def test_one_bad_number_makes_a_tree_non_finite(bad):
    tree = nested()
    assert is_finite(tree)
    tree["list"][1][1][0] = bad
    assert not is_finite(tree)


def test_infinities_do_not_cancel():
    assert not is_finite(torch.tensor([torch.inf, -torch.inf]))


def test_norm_is_that_of_all_leaves_together():
    tree = {"a": torch.tensor([3.0]), "b": (torch.tensor([[4.0, 12.0]]), torch.tensor(84.0))}
    assert norm(tree) == 85  # 3² + 4² + 12² + 84² = 85²


def test_norm_keeps_leading_axes():
    stacked = torch.tensor([[3.0, 4.0], [6.0, 8.0]])
    assert norm({"x": stacked}, lead=1).tolist() == [5, 10]
