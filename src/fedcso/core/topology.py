"""Who averages with whom after a round: all clients at a server, or each with its neighbours (gossip).

    x_n ← Σ_j W_nj x_j,        W doubly stochastic: W_nj ≥ 0, rows and columns sum to 1

W keeps the mean over clients, and brings clients nearer to it by a factor of λ₂, the second largest absolute eigenvalue
of a symmetric W. With `complete`, W = 11ᵀ/N, all clients are equal after a round, as with a server.
"""

import math
from collections.abc import Callable

import torch

from fedcso.core.errors import InvalidValue

SERVER = "server"


def ring(clients: int) -> torch.Tensor:
    """Return W of a ring: (left + own + right) / 3."""
    return _circle(clients, 1) / 3


def torus(clients: int) -> torch.Tensor:
    """Return W of a grid whose borders are joined: (own + left + right + above + below) / 5."""
    height = next(h for h in range(math.isqrt(clients), 0, -1) if clients % h == 0)
    if height == 1:
        raise InvalidValue("topology", "torus", f"a ring for {clients} clients, which do not fill a grid")
    width = clients // height
    rows, columns = torch.eye(height, dtype=torch.float64), torch.eye(width, dtype=torch.float64)
    return (torch.kron(rows, _circle(width, 1)) + torch.kron(_circle(height, 0), columns)) / 5


def complete(clients: int) -> torch.Tensor:
    """Return W = 11ᵀ/N: every client is a neighbour of all others."""
    return torch.full((clients, clients), 1 / clients, dtype=torch.float64)


TOPOLOGIES: dict[str, Callable[[int], torch.Tensor]] = {"ring": ring, "torus": torus, "complete": complete}
"""Networks without a server by name: the number of clients → W."""

ALLOWED = (
    f"{SERVER}, {', '.join(TOPOLOGIES)}, or W: rows of numbers, separated by semicolons, that sum to 1 as columns do"
)


def mixing_matrix(topology: str, clients: int) -> torch.Tensor | None:
    """Return W of a topology for so many clients; None for a server."""
    if topology == SERVER:
        return None
    return TOPOLOGIES[topology](clients) if topology in TOPOLOGIES else _parse(topology, clients)


def count_edges(matrix: torch.Tensor) -> int:
    """Return the number of messages in a round: from each client to each of its neighbours."""
    return int(matrix.count_nonzero() - matrix.diagonal().count_nonzero())


def _circle(length: int, own: int) -> torch.Tensor:
    """Return a matrix with a one for each neighbour on a circle, and `own` on the diagonal."""
    one = torch.eye(length, dtype=torch.float64)
    return own * one + one.roll(1, 0) + one.roll(-1, 0)


def _parse(text: str, clients: int) -> torch.Tensor:
    """Read W from text such as `0.5 0.5; 0.5 0.5`."""
    try:
        rows = [[float(number) for number in row.split()] for row in text.replace("\n", ";").split(";") if row.strip()]
        matrix = torch.tensor(rows, dtype=torch.float64)
    except ValueError:
        raise InvalidValue("topology", text, ALLOWED) from None
    if matrix.shape != (clients, clients):
        raise InvalidValue("topology", text, f"{clients} rows of {clients} numbers, one for each client that trains")
    sums = torch.cat([matrix.sum(0), matrix.sum(1)])
    if not bool((matrix >= 0).all()) or not torch.allclose(sums, torch.ones_like(sums), rtol=0, atol=1e-6):
        raise InvalidValue("topology", text, "numbers of at least 0 of which each row and each column sums to 1")
    return matrix
