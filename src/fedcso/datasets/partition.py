"""Who holds which example: splits by the data seed, which is not the runs' seed."""

import heapq
import math

import numpy as np
import torch

from fedcso.core.errors import InvalidValue, require, require_count


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


def pathological(labels: torch.Tensor, clients: int, classes: int, seed: int) -> list[torch.Tensor]:
    """Indices for each client, who holds examples of exactly `classes` of the label values (McMahan et al., 2017).

    Unlike theirs, no portion straddles two labels. Every example is held by one client, and sizes are as equal as
    can easily be: each label is cut into equal portions, frequent ones into more of them, and the largest portion
    left always goes to the client who has least.
    """
    require_count("clients", clients)
    require_count("classes", classes)
    rng = np.random.default_rng((seed, 1))
    members = [
        rng.permutation(np.flatnonzero(labels.numpy() == label))
        for label in rng.permutation(torch.unique(labels).numpy())
    ]
    portions = _portions([len(group) for group in members], clients, classes)
    shares: list[list[np.ndarray]] = [[] for _ in range(clients)]
    sizes = np.zeros(clients, dtype=int)
    for group, number in sorted(zip(members, portions, strict=True), key=lambda pair: -len(pair[0]) / pair[1]):
        # To those who can take most labels yet, or there would be some at the end who need one label twice.
        order = np.lexsort((rng.random(clients), sizes, np.array([len(share) for share in shares])))
        for client, portion in zip(order[:number], np.array_split(group, number), strict=True):
            shares[client].append(portion)
            sizes[client] += len(portion)
    return [torch.from_numpy(np.sort(np.concatenate(share))) for share in shares]


def _portions(counts: list[int], clients: int, classes: int) -> list[int]:
    """Into how many portions to cut each label, so that there are clients × classes, as equal as can be.

    As seats of a parliament go to states, by the method of Huntington and Hill: relative differences are smallest.
    A label is cut into no more portions than it has examples, nor than there are clients: none takes it twice.
    """
    if classes > len(counts):
        raise InvalidValue("classes", classes, f"at most the {len(counts)} label values there are")
    needed, most = clients * classes, [min(count, clients) for count in counts]
    if needed < len(counts):
        least = math.ceil(len(counts) / classes)
        lost = f"with fewer, some of the {len(counts)} label values would be held by none and their examples lost"
        raise InvalidValue("clients", clients, f"at least {least} if each holds {classes} of the label values; {lost}")
    if needed > sum(most):
        cut = f"into {clients} × {classes} portions; {sum(most)} are possible with so many clients and examples"
        raise InvalidValue("clients", clients, f"few enough to cut the labels {cut}")
    portions = [1] * len(counts)
    turns = [(-count / math.sqrt(2), label) for label, count in enumerate(counts) if most[label] > 1]
    heapq.heapify(turns)
    for _ in range(needed - len(counts)):
        _, label = heapq.heappop(turns)
        portions[label] += 1
        if portions[label] < most[label]:
            heapq.heappush(turns, (-counts[label] / math.sqrt(portions[label] * (portions[label] + 1)), label))
    return portions
