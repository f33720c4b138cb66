"""FedAdam: Adam at the server, around any method.

    M ← β₁ M + (1 − β₁) Δ,      V ← β₂ V + (1 − β₂) Δ²,      x ← x + η_s M / (√V + τ)

Δ = x̄ − x of the method inside; M = 0 and V = τ² at first, and no bias correction. Clients send what the method inside
sends; M and V are kept at the server. With β₁ = 0 and β₂ = 1 it is a server rate of η_s / (2τ).

Reference: Reddi et al., Adaptive Federated Optimization, ICLR 2021 (Algorithm 2). Start and defaults follow a public
summary of the paper; Flower's FedAdam starts from V = 0 and corrects the bias.
"""

from dataclasses import dataclass
from typing import ClassVar

from fedcso.algorithms.server_optimiser import AdaptiveServer, require_old_weight
from fedcso.core.tree import Tree, Weight, mix


@dataclass(frozen=True)
class FedAdam(AdaptiveServer):
    """Adam at the server, around any method.

    base is the method inside, server_rate is η_s, server_momentum is β₁ and server_decay is β₂ (the weights of the OLD
    M and V), adaptivity is τ.
    """

    server_decay: Weight = 0.99

    use_when: ClassVar[str] = "if coordinates need different step sizes; tune η_s and α together"

    def __post_init__(self) -> None:
        super().__post_init__()
        require_old_weight("server_decay", self.server_decay)

    def second(self, v: Tree, squares: Tree) -> Tree:
        """Return the mean of V and Δ²."""
        return mix(squares, v, self.server_decay)
