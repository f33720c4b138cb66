"""Random number streams, which depend on (seed, client, round) only."""

import numpy as np
import torch

# In place of a client's number: streams that belong to no client.
SERVER, START, OUTPUT, DATA, DIAGNOSIS, ASSUMPTIONS, COINS, AVERAGE = -1, -2, -3, -4, -5, -6, -7, -8


def stream(seed: int, client: int, round: int) -> torch.Generator:
    """Return the random number generator of one client in one round.

    Nothing else determines it. So clients are independent, all engines draw the same samples, the order of clients
    does not matter, and a run resumes without saved generators.
    """
    entropy = np.random.SeedSequence(seed, spawn_key=(client % 2**32, round)).generate_state(1, np.uint64)
    return torch.Generator().manual_seed(int(entropy[0]))


def draw_distinct(number: int, below: int, generator: torch.Generator) -> list[int]:
    """Draw distinct whole numbers below a limit."""
    chosen: list[int] = torch.randperm(below, generator=generator)[:number].tolist()
    return chosen
