"""FedYogi: Yogi at the server, around any method.

    M ← β₁ M + (1 − β₁) Δ,      V ← V − (1 − β₂) Δ² sign(V − Δ²),      x ← x + η_s M / (√V + τ)

Δ = x̄ − x of the method inside; M = 0 and V = τ² at first. V changes by at most (1 − β₂) Δ² a round, so that it forgets
large Δ slower than Adam's. Clients send what the method inside sends; M and V are kept at the server.

Reference: Reddi et al., Adaptive Federated Optimization, ICLR 2021 (Algorithm 2).
"""

from dataclasses import dataclass
from typing import ClassVar

from fedcso.algorithms.server_optimiser import AdaptiveServer, require_old_weight
from fedcso.core.tree import Tree, Weight, add_scaled, map_leaves


@dataclass(frozen=True)
class FedYogi(AdaptiveServer):
    """Yogi at the server, around any method.

    base is the method inside, server_rate is η_s, server_momentum is β₁ and server_decay is β₂ (the weights of the OLD
    M and V), adaptivity is τ.
    """

    server_decay: Weight = 0.99

    use_when: ClassVar[str] = "as FedAdam, if gradients are sparse or their size changes much"

    def __post_init__(self) -> None:
        super().__post_init__()
        require_old_weight("server_decay", self.server_decay)

    def second(self, v: Tree, squares: Tree) -> Tree:
        """Return V, moved towards Δ² by a multiple of Δ²."""
        towards = map_leaves(lambda old, new: new * (new - old).sign(), v, squares)
        return add_scaled(v, towards, 1 - self.server_decay)
