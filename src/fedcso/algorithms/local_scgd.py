"""Local-SCGD: stochastic compositional gradient descent with local steps.

    y_{t+1} = (1 − γ) y_t + γ (1/b) Σ_i ĝ_i(x_t)                 the inner value, tracked over the steps
    z_{t+1} = (1/b) Σ_i ∇ĝ_i(x_t)ᵀ ∇f_i(y_{t+1})
    x_{t+1} = Π_X( x_t − α z_{t+1} ),       x and y averaged over clients after every q steps

It is designed for inner samples that do not depend on ξ: y is ONE value for all ξ, which is wrong for conditional
problems. ĝ_i is the mean over the m inner samples of the step's i-th ξ; it enters the y at which f_i is taken with the
weight γ/b. y_1 = (1/b) Σ_i ĝ_i(x_0). Clients send x and y, and keep nothing.

With `blend="each"`, every ξ of the step has a blend of its own, in which its ĝ_i has the weight γ whatever b is:

    y_{t+1,i} = (1 − γ) y_t + γ ĝ_i(x_t)
    z_{t+1}   = (1/b) Σ_i ∇ĝ_i(x_t)ᵀ ∇f_i(y_{t+1,i})
    y_{t+1}   = (1/b) Σ_i y_{t+1,i}                              the same y as above

Both rules agree for b = 1. With γ = 1, blending each is FCSG for every b; blending the mean is FCSG for b = 1 only.

References: Wang, Fang, Liu, Stochastic Compositional Gradient Descent, Math. Programming 2017; Gao, Li, Huang, On the
Convergence of Local Stochastic Compositional Gradient Descent with Momentum, ICML 2022 (one y for a step). Blending
each is the baseline in the code published with Wu et al., Federated Conditional Stochastic Optimization, NeurIPS 2023.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

from fedcso.core.algorithm import Algorithm, Schedule, Server, State, at
from fedcso.core.errors import require_choice, require_fraction, require_positive
from fedcso.core.oracle import Oracle
from fedcso.core.problem import Batch
from fedcso.core.tree import Tree, Weight, leaves, map_leaves, mix

Blend = Literal["mean", "each"]
"""What is blended into the tracked y: the mean of the step's inner values, or each of them by itself."""


@dataclass(frozen=True)
class LocalSCGD(Algorithm):
    """Stochastic compositional gradient descent with local steps: one tracked inner value for all ξ.

    learning_rate is α, tracking is γ (the weight of the NEW inner value). blend says where f is taken: at one y for all
    ξ of a step, into which the mean of their inner values is blended ("mean"), or at a blend for each of them ("each").
    """

    learning_rate: Schedule = 0.01
    tracking: Schedule = 0.5
    blend: Blend = "mean"
    tracks: ClassVar[bool] = True
    use_when: ClassVar[str] = "as a baseline, or if η does not depend on ξ"

    def __post_init__(self) -> None:
        require_positive("learning_rate", self.learning_rate)
        require_fraction("tracking", self.tracking)
        require_choice("blend", self.blend, get_args(Blend))

    def init(self, x: Tree) -> Server:
        """Return x and an empty y, which the first step sets."""
        return Server({"x": x, "y": ()})

    def step(self, state: State, oracle: Oracle, batch: Batch, t: int) -> State:
        """Update the tracked y, then descend."""
        x = state.shared["x"]
        y, z = track(state.shared["y"], oracle, x, batch, at(self.tracking, t), self.blend)
        return State({"x": oracle.move(x, z, at(self.learning_rate, t)), "y": y})


def track(y: Tree, oracle: Oracle, x: Tree, batch: Batch, weight: Weight, blend: Blend) -> tuple[Tree, Tree]:
    """Return the tracked inner value y_{t+1} and the gradient estimate z_{t+1}; an empty y has no weight."""
    each = blend == "each"
    g_hat, chain = oracle.inner(x, batch, each)
    if leaves(y):
        y = map_leaves(lambda leaf: leaf.unsqueeze(oracle.lead), y) if each else y
        g_hat = mix(y, g_hat, weight)
    return map_leaves(lambda leaf: leaf.mean(oracle.lead), g_hat) if each else g_hat, chain(g_hat)
