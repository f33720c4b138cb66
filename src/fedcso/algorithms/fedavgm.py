"""FedAvgM: momentum at the server, around any method.

    v ← β_s v + Δ,      x ← x + η_s v,            Δ = x̄ − x of the method inside, v = 0 at first

Clients send what the method inside sends; v is kept at the server. There is no damping, as in torch's SGD: in the long
run the steps are η_s/(1 − β_s) times as long as those of the method inside, which is 1 by default. With q = 1 and FCSG
inside it is heavy ball with step size α η_s.

Reference: Hsu, Qi, Brown, Measuring the Effects of Non-Identical Data Distribution for Federated Visual Classification,
2019. The rule is that of Flower's strategy FedAvgM.
"""

from dataclasses import dataclass
from typing import ClassVar

from fedcso.algorithms.server_optimiser import Moments, ServerOptimiser, require_old_weight
from fedcso.core.algorithm import Schedule
from fedcso.core.tree import Tree, Weight, add_scaled, zeros_like


@dataclass(frozen=True)
class FedAvgM(ServerOptimiser):
    """Momentum at the server, around any method.

    base is the method inside, server_rate is η_s, server_momentum is β_s (the weight of the OLD v).
    """

    server_rate: Schedule = 0.1
    server_momentum: Weight = 0.9

    use_when: ClassVar[str] = "if few of many unlike clients take part, so that averages jump from round to round"

    def __post_init__(self) -> None:
        super().__post_init__()
        require_old_weight("server_momentum", self.server_momentum)

    def start(self, x: Tree) -> Moments:
        """Return v = 0."""
        return {"v": zeros_like(x)}

    def direction(self, moments: Moments, change: Tree) -> tuple[Tree, Moments]:
        """Return the new v."""
        v = add_scaled(change, moments["v"], self.server_momentum)
        return v, {"v": v}
