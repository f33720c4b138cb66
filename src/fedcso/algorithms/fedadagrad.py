"""FedAdagrad: Adagrad at the server, around any method.

    M ← β₁ M + (1 − β₁) Δ,      V ← V + Δ²,      x ← x + η_s M / (√V + τ)

Δ = x̄ − x of the method inside; M = 0 and V = τ² at first. Clients send what the method inside sends; M and V are kept
at the server. Steps shrink like 1/√rounds.

Reference: Reddi et al., Adaptive Federated Optimization, ICLR 2021 (Algorithm 2; its experiments take β₁ = 0).
"""

from dataclasses import dataclass
from typing import ClassVar

from fedcso.algorithms.server_optimiser import AdaptiveServer
from fedcso.core.tree import Tree, Weight, add_scaled


@dataclass(frozen=True)
class FedAdagrad(AdaptiveServer):
    """Adagrad at the server, around any method.

    base is the method inside, server_rate is η_s, server_momentum is β₁ (the weight of the OLD M), adaptivity is τ.
    """

    server_momentum: Weight = 0.0

    use_when: ClassVar[str] = "for sparse gradients, and if steps should shrink by themselves"

    def second(self, v: Tree, squares: Tree) -> Tree:
        """Return V + Δ²."""
        return add_scaled(v, squares, 1.0)
