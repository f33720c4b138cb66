"""Counts of what a run costs: samples, gradients, rounds, bytes."""

from dataclasses import dataclass
from operator import add


@dataclass(frozen=True)
class Costs:
    """Counts that add up over steps, clients and rounds."""

    outer_samples: int = 0
    """Samples of ξ drawn by all clients."""
    inner_samples: int = 0
    """Samples of η drawn by all clients."""
    gradients: int = 0
    """Evaluations of ∇F̂(x; ξ, B), one per ξ and point; Acc-FCSG-M needs two per sampled ξ."""
    rounds: int = 0
    """Communication rounds."""
    bytes_up: int = 0
    """Sent by clients to the server, or to their neighbours."""
    bytes_down: int = 0
    """Sent by the server to clients."""

    def __add__(self, other: "Costs") -> "Costs":
        return Costs(*map(add, vars(self).values(), vars(other).values()))

    def __mul__(self, times: int) -> "Costs":
        return Costs(*(count * times for count in vars(self).values()))

    def as_dict(self) -> dict[str, int]:
        """Return the counts by name."""
        return dict(vars(self))
