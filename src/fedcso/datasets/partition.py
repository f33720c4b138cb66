"""Who holds which example: splits by the data seed, which is not the runs' seed."""

import numpy as np
import torch

from fedcso.errors import InvalidValue, require, require_count


def thirds(number: int, seed: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Indices for training (70 %), validation (10 %) and test (20 %)."""
    order = torch.from_numpy(np.random.default_rng((seed, 0)).permutation(number))
    train, validation = int(0.7 * number), int(0.8 * number)
    return order[:train], order[train:validation], order[validation:]


def partition(labels: torch.Tensor, clients: int, alpha: float, seed: int) -> list[torch.Tensor]:
    """Indices for each client: in equal portions (alpha 0), or each class spread by Dirichlet(alpha) weights.

    Every client gets at least one example, whatever alpha: those left with nothing take one from the largest.
    """
    require_count("clients", clients)
    require("alpha", alpha, lambda a: a >= 0, "at least 0 (0 for clients that are alike)")
    if clients > len(labels):
        raise InvalidValue("clients", clients, f"at most the {len(labels)} training examples there are")
    rng = np.random.default_rng((seed, 1))
    if alpha == 0:
        return [torch.from_numpy(part) for part in np.array_split(rng.permutation(len(labels)), clients)]
    shares: list[list[int]] = [[] for _ in range(clients)]
    for label in torch.unique(labels).tolist():
        members = rng.permutation(np.flatnonzero(labels.numpy() == label))
        # Gammas instead of Dirichlet: for tiny alpha the latter's normalisation divides 0 by 0.
        weights = np.maximum(rng.gamma(alpha, size=clients), 1e-300)
        borders = (np.cumsum(weights / weights.sum())[:-1] * len(members)).round().astype(int)
        for share, part in zip(shares, np.split(members, borders), strict=True):
            share.extend(part.tolist())
    for share in shares:
        if not share:
            share.append(max(shares, key=len).pop())
    return [torch.tensor(sorted(share)) for share in shares]
