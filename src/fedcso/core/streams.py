"""Randomness that belongs to (seed, client, round), and to nothing else."""

import numpy as np
import torch

# Streams that belong to no client.
SERVER, START, OUTPUT, DATA, DIAGNOSIS, ASSUMPTIONS = -1, -2, -3, -4, -5, -6


def stream(seed: int, client: int, round: int) -> torch.Generator:
    """The random numbers of one client in one round.

    They depend on nothing else, so clients are independent, all engines draw the same samples, the
    order of clients does not matter, a run resumes without saved generators, and nothing random
    has to travel.
    """
    entropy = np.random.SeedSequence(seed, spawn_key=(client % 2**32, round)).generate_state(1, np.uint64)
    return torch.Generator().manual_seed(int(entropy[0]))
