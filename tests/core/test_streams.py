"""Random streams are determined by (seed, client, round): reproducible, and independent of each other."""

import math
from itertools import product

import pytest
import torch

from fedcso.core.streams import DATA, OUTPUT, SERVER, START, draw_distinct, stream


def numbers(seed: int, client: int, round: int, count: int = 10_000) -> torch.Tensor:
    return torch.randn(count, generator=stream(seed, client, round), dtype=torch.float64)


def test_a_stream_is_reproducible():
    assert torch.equal(numbers(1, 2, 3), numbers(1, 2, 3))


def test_a_stream_does_not_touch_the_global_one():
    before = torch.random.get_rng_state()
    numbers(0, 0, 0)
    assert torch.equal(torch.random.get_rng_state(), before)


def test_all_streams_differ():
    """This includes (1, 2, 3) and (3, 2, 1), and the server's streams and the clients'."""
    places = list(product(range(12), [SERVER, START, OUTPUT, DATA, *range(12)], range(12)))
    assert len({stream(*place).initial_seed() for place in places}) == len(places)


def test_neighbouring_streams_are_uncorrelated():
    count = 10_000
    neighbours = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 0), (0, 1, 1), (0, SERVER, 0)]
    correlations = torch.corrcoef(torch.stack([numbers(*place, count) for place in neighbours]))
    off_diagonal = correlations - torch.eye(len(neighbours), dtype=torch.float64)
    assert off_diagonal.abs().max() < 4 / math.sqrt(count)


def test_large_seeds_have_streams_of_their_own():
    """A seed of more than 32 bits must not be confused with the client's or the round's number."""
    small = {stream(0, client, round).initial_seed() for client, round in product(range(10), range(10))}
    large = {stream(2**32, client, round).initial_seed() for client, round in product(range(10), range(10))}
    assert not small & large


@pytest.mark.parametrize(("number", "below"), [(1, 1), (1, 2), (2, 2), (3, 5), (5, 5), (16, 17), (7, 1000), (200, 300)])
def test_distinct_numbers_are_the_first_of_a_permutation(number, below):
    for seed in range(20):
        drawn = draw_distinct(number, below, stream(seed, SERVER, 0))
        assert drawn == torch.randperm(below, generator=stream(seed, SERVER, 0))[:number].tolist()


def test_few_of_very_many_numbers_are_drawn_at_once():
    drawn = draw_distinct(100, 10**8, stream(0, SERVER, 0))  # a permutation would take 0.8 GB
    assert len(set(drawn)) == 100
    assert 0 <= min(drawn) < 10**7 < 9 * 10**7 < max(drawn) < 10**8
