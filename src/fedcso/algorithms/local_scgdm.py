"""Local-SCGDM: Local-SCGD with momentum.

    y_{t+1} = (1 − γ) y_t + γ (1/b) Σ_i ĝ_i(x_t)
    z_{t+1} = (1/b) Σ_i ∇ĝ_i(x_t)ᵀ ∇f_i(y_{t+1})
    u_{t+1} = (1 − β) u_t + β z_{t+1}
    x_{t+1} = Π_X( x_t − α u_{t+1} ),       x, y and u averaged over clients after every q steps

y_1 = (1/b) Σ_i ĝ_i(x_0) and u_1 = z_1. Clients send x, y and u, and keep nothing. With γ = 1 and b = 1 it is FCSG-M.

With `blend="each"`, f_i is taken at y_{t+1,i} = (1 − γ) y_t + γ ĝ_i(x_t) instead, as in Local-SCGD; with γ = 1 that is
FCSG-M for every b.

References: Gao, Li, Huang, On the Convergence of Local Stochastic Compositional Gradient Descent with Momentum, ICML
2022 (one y for a step); the code published with Wu et al., Federated Conditional Stochastic Optimization, NeurIPS 2023
(blending each).
"""

from dataclasses import dataclass
from typing import ClassVar, get_args

from fedcso.algorithms.local_scgd import Blend, track
from fedcso.core.algorithm import Algorithm, Schedule, Server, State, at
from fedcso.core.errors import require_choice, require_fraction, require_positive
from fedcso.core.oracle import Oracle
from fedcso.core.problem import Batch
from fedcso.core.tree import Tree, mix, zeros_like


@dataclass(frozen=True)
class LocalSCGDM(Algorithm):
    """Local-SCGD with momentum: one tracked inner value for all ξ, and a running mean of the gradients.

    learning_rate is α, tracking is γ, momentum is β; blend is that of Local-SCGD.
    """

    learning_rate: Schedule = 0.01
    tracking: Schedule = 0.5
    momentum: Schedule = 0.1
    blend: Blend = "mean"
    tracks: ClassVar[bool] = True
    use_when: ClassVar[str] = "as Local-SCGD, with momentum"

    def __post_init__(self) -> None:
        require_positive("learning_rate", self.learning_rate)
        require_fraction("tracking", self.tracking)
        require_fraction("momentum", self.momentum)
        require_choice("blend", self.blend, get_args(Blend))

    def init(self, x: Tree) -> Server:
        """Return x, u and an empty y; the first step sets u and y."""
        return Server({"x": x, "u": zeros_like(x), "y": ()})

    def step(self, state: State, oracle: Oracle, batch: Batch, t: int) -> State:
        """Update the tracked y and the momentum u, then descend."""
        x, u = state.shared["x"], state.shared["u"]
        y, z = track(state.shared["y"], oracle, x, batch, at(self.tracking, t), self.blend)
        u = z if t == 0 else mix(u, z, at(self.momentum, t))
        return State({"x": oracle.move(x, u, at(self.learning_rate, t)), "u": u, "y": y})
