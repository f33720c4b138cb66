"""Split examples among clients and into training, validation and test parts, by the data seed (not the run's seed)."""

import heapq
import math

import numpy as np
import torch

from fedcso.core.errors import InvalidValue, require, require_count


def train_validation_test(number: int, seed: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return indices for training (70 %), validation (10 %) and test (20 %)."""
    order = torch.from_numpy(np.random.default_rng((seed, 0)).permutation(number))
    train, validation = int(0.7 * number), int(0.8 * number)
    return order[:train], order[train:validation], order[validation:]


def split_each(shares: list[torch.Tensor], seed: int) -> list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]:
    """Split the indices of each client into training, validation and test."""
    parts = [train_validation_test(len(own), seed) for own in shares]
    return [
        (own[train], own[validation], own[test]) for own, (train, validation, test) in zip(shares, parts, strict=True)
    ]


def partition(labels: torch.Tensor, clients: int, alpha: float, seed: int) -> list[torch.Tensor]:
    """Return indices for each client: equal parts (alpha = 0), or each class divided by Dirichlet(alpha) weights.

    Every client gets at least one example, whatever alpha is: a client with none takes one from the largest.
    """
    require_count("clients", clients)
    require("alpha", alpha, lambda a: a >= 0, "at least 0 (0 for clients with the same distribution)")
    if clients > len(labels):
        raise InvalidValue("clients", clients, f"at most {len(labels)}, the number of training examples")
    rng = np.random.default_rng((seed, 1))
    if alpha == 0:
        return [torch.from_numpy(part) for part in np.array_split(rng.permutation(len(labels)), clients)]
    shares: list[list[int]] = [[] for _ in range(clients)]
    for label in torch.unique(labels).tolist():
        members = rng.permutation(np.flatnonzero(labels.numpy() == label))
        # Gamma variables instead of numpy's Dirichlet, whose normalisation divides 0 by 0 for tiny alpha.
        weights = np.maximum(rng.gamma(alpha, size=clients), 1e-300)
        borders = (np.cumsum(weights / weights.sum())[:-1] * len(members)).round().astype(int)
        for share, part in zip(shares, np.split(members, borders), strict=True):
            share.extend(part.tolist())
    for share in shares:
        if not share:
            share.append(max(shares, key=len).pop())
    return [torch.tensor(sorted(share)) for share in shares]


def pathological(labels: torch.Tensor, clients: int, classes: int, seed: int) -> list[torch.Tensor]:
    """Return indices for each client, which gets examples of exactly `classes` labels (McMahan et al., 2017).

    Unlike in that paper, no portion contains two labels. Every example goes to one client. To make sizes nearly equal,
    each label is cut into equal portions, more of them for frequent labels, and the largest remaining portion always
    goes to the client that has the fewest examples.
    """
    require_count("clients", clients)
    require_count("classes", classes)
    rng = np.random.default_rng((seed, 1))
    members = [
        rng.permutation(np.flatnonzero(labels.numpy() == label))
        for label in rng.permutation(torch.unique(labels).numpy())
    ]
    portions = _count_portions([len(group) for group in members], clients, classes)
    shares: list[list[np.ndarray]] = [[] for _ in range(clients)]
    sizes = np.zeros(clients, dtype=int)
    for group, number in sorted(zip(members, portions, strict=True), key=lambda pair: -len(pair[0]) / pair[1]):
        # Clients with the fewest labels come first; otherwise a client could need the same label twice at the end.
        order = np.lexsort((rng.random(clients), sizes, np.array([len(share) for share in shares])))
        for client, portion in zip(order[:number], np.array_split(group, number), strict=True):
            shares[client].append(portion)
            sizes[client] += len(portion)
    return [torch.from_numpy(np.sort(np.concatenate(share))) for share in shares]


def _count_portions(counts: list[int], clients: int, classes: int) -> list[int]:
    """Return into how many portions to cut each label, for clients × classes portions of nearly equal size.

    The method of Huntington and Hill, which apportions seats of a parliament to states, minimises the relative
    differences. A label is cut into at most as many portions as it has examples and as there are clients, because no
    client takes a label twice.
    """
    if classes > len(counts):
        raise InvalidValue("classes", classes, f"at most {len(counts)}, the number of labels")
    needed, most = clients * classes, [min(count, clients) for count in counts]
    if needed < len(counts):
        least = math.ceil(len(counts) / classes)
        unused = f"with fewer clients, the examples of some of the {len(counts)} labels would not be used"
        raise InvalidValue("clients", clients, f"at least {least} if each has {classes} of the labels; {unused}")
    if needed > sum(most):
        limit = f"there are examples for {sum(most)}"
        raise InvalidValue("clients", clients, f"smaller: it needs {clients} × {classes} portions, and {limit}")
    portions = [1] * len(counts)
    queue = [(-count / math.sqrt(2), label) for label, count in enumerate(counts) if most[label] > 1]
    heapq.heapify(queue)
    for _ in range(needed - len(counts)):
        _, label = heapq.heappop(queue)
        portions[label] += 1
        if portions[label] < most[label]:
            heapq.heappush(queue, (-counts[label] / math.sqrt(portions[label] * (portions[label] + 1)), label))
    return portions
