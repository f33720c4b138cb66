"""Local-SCGD: stochastic compositional gradient descent with local steps.

    y_{t+1} = (1 − γ) y_t + γ ĝ(x_t)                 the inner value, tracked over the steps
    z_{t+1} = ∇ĝ(x_t)ᵀ ∇f(y_{t+1})
    x_{t+1} = Π_X( x_t − α z_{t+1} ),       x and y averaged over clients after every q steps

It is designed for inner samples that do not depend on ξ: y is ONE value for all ξ (the mean over the step's ξ), which
is wrong for conditional problems. y_1 = ĝ(x_0). Clients send x and y, and keep nothing.

References: Wang, Fang, Liu, Stochastic Compositional Gradient Descent, Math. Programming 2017; Gao,
Li, Huang, On the Convergence of Local Stochastic Compositional Gradient Descent with Momentum, ICML
2022.
"""

from dataclasses import dataclass
from typing import ClassVar

from fedcso.core.algorithm import Algorithm, Schedule, Server, State, at
from fedcso.core.errors import require_fraction, require_positive
from fedcso.core.oracle import Oracle
from fedcso.core.problem import Batch
from fedcso.core.tree import Tree, Weight, leaves, mix


@dataclass(frozen=True)
class LocalSCGD(Algorithm):
    """Stochastic compositional gradient descent with local steps: one tracked inner value for all ξ.

    learning_rate is α, tracking is γ (the weight of the NEW inner value).
    """

    learning_rate: Schedule = 0.01
    tracking: Schedule = 0.5
    tracks: ClassVar[bool] = True
    use_when: ClassVar[str] = "as a baseline, or if η does not depend on ξ"

    def __post_init__(self) -> None:
        require_positive("learning_rate", self.learning_rate)
        require_fraction("tracking", self.tracking)

    def init(self, x: Tree) -> Server:
        """Return x and an empty y, which the first step sets."""
        return Server({"x": x, "y": ()})

    def step(self, state: State, oracle: Oracle, batch: Batch, t: int) -> State:
        """Update the tracked y, then descend."""
        x = state.shared["x"]
        y, z = track(state.shared["y"], oracle, x, batch, at(self.tracking, t))
        return State({"x": oracle.move(x, z, at(self.learning_rate, t)), "y": y})


def track(y: Tree, oracle: Oracle, x: Tree, batch: Batch, weight: Weight) -> tuple[Tree, Tree]:
    """Return the tracked inner value y_{t+1} and the gradient estimate z_{t+1} at it."""
    g_hat, chain = oracle.inner(x, batch)
    y = mix(y, g_hat, weight) if leaves(y) else g_hat
    return y, chain(y)
