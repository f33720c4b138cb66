"""ServerRate: a learning rate at the server, around any method.

    x ← x + η_s (x̄ − x)            x̄: the average of the method inside

With η_s = 1 it is the method inside; η_s < 1 damps a round, η_s > 1 extrapolates it. Around SCAFFOLD it is the global
rate η_g of its paper. Sends and keeps what the method inside does. Around Acc-FCSG-M take η_s ≤ 1: its correction holds
for any two points, but x_t − x_{t−1} then contains the server's jump.

Reference: Reddi et al., Adaptive Federated Optimization, ICLR 2021 (FedOpt with SGD at the server).
"""

from dataclasses import dataclass
from typing import ClassVar

from fedcso.algorithms.server_optimiser import Moments, ServerOptimiser
from fedcso.core.tree import Tree


@dataclass(frozen=True)
class ServerRate(ServerOptimiser):
    """A learning rate at the server, around any method.

    base is the method inside, server_rate is η_s (1 for the method itself).
    """

    use_when: ClassVar[str] = "to damp (η_s < 1) or to lengthen (η_s > 1) the step of a round"

    def start(self, x: Tree) -> Moments:
        """Return no moments."""
        return {}

    def direction(self, moments: Moments, change: Tree) -> tuple[Tree, Moments]:
        """Return Δ."""
        return change, {}
