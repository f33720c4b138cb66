"""Random number streams, which depend on (seed, client, round) only."""

import numpy as np
import torch

# In place of a client's number: streams that belong to no client.
SERVER, START, OUTPUT, DATA, DIAGNOSIS, ASSUMPTIONS, COINS, AVERAGE = -1, -2, -3, -4, -5, -6, -7, -8

_WORD = 2**32 - 1
MOST_NUMBERS = _WORD // 20
"""The longest permutation for which torch uses random numbers of 32 bits."""


def stream(seed: int, client: int, round: int) -> torch.Generator:
    """Return the random number generator of one client in one round.

    Nothing else determines it. So clients are independent, all engines draw the same samples, the order of clients
    does not matter, and a run resumes without saved generators.
    """
    entropy = np.random.SeedSequence(seed, spawn_key=(client % 2**32, round)).generate_state(1, np.uint64)
    return torch.Generator().manual_seed(int(entropy[0]))


def draw_distinct(number: int, below: int, generator: torch.Generator) -> list[int]:
    """Draw distinct whole numbers below a limit: `torch.randperm(below)[:number]`, without making the permutation.

    Both are the first steps of a Fisher–Yates shuffle of 0, 1, 2, …, with the same random numbers. Here only the places
    whose number has changed are stored, so it costs as much as is drawn. The limit is at most `MOST_NUMBERS`.
    """
    pairs = torch.empty((number + 1) // 2, dtype=torch.int64).random_(-(2**63), None, generator=generator).tolist()
    words = [word for pair in pairs for word in (pair >> 32 & _WORD, pair & _WORD)]  # of 32 random bits, as in randperm
    moved: dict[int, int] = {}
    chosen = []
    for place, word in zip(range(number), words, strict=False):
        other = place + word % (below - place)
        chosen.append(moved.get(other, other))
        moved[other] = moved.get(place, place)
    return chosen
