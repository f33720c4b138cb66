"""PAGE: variance reduction by large batches at random steps, which are the same for all clients.

    u_t = (1/B') Σ_{i≤B'} ∇F̂(x_t; ξ_i, B_i)                                        with probability p
    u_t = u_{t−1} + (1/b) Σ_{i≤b} ( ∇F̂(x_t; ξ_i, B_i) − ∇F̂(x_{t−1}; ξ_i, B_i) )    otherwise
    x_{t+1} = Π_X( x_t − α u_t ),         x and u averaged over clients after every q steps

Both gradients of a difference are taken on the same samples. A coin is thrown for each step t, from a stream that
depends on `coins` and t alone, so that all clients, engines and seeds of a run obey the same coins; step 0 always has a
large batch. Clients send x and u, and keep x_{t−1}; one that missed a round leaves u as it is in its first step. With
p = 1 it is FCSG with batch B'; with coins that fall every 1/p steps it would be BSpiderBoost.

Reference: Li, Bao, Zhang, Richtárik, PAGE: A Simple and Optimal Probabilistic Gradient Estimator for Nonconvex
Optimization, ICML 2021, which has one machine. The rule is that of its abstract; p = b/(b + B'), its choice, was not
verified. Local steps are added here.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch

from fedcso.core.algorithm import Algorithm, Schedule, Server, State, at
from fedcso.core.errors import require_count, require_positive
from fedcso.core.oracle import Oracle
from fedcso.core.plan import Plan
from fedcso.core.problem import Batch
from fedcso.core.streams import COINS, stream
from fedcso.core.tree import Tree, add_scaled, subtract, zeros_like


@dataclass(frozen=True)
class PAGE(Algorithm):
    """Variance reduction by large batches at random steps, the same for all clients.

    learning_rate is α, large_batch is B', drawn with probability p = 1/period, coins is the seed of these draws.
    """

    learning_rate: Schedule = 0.01
    period: int = 10
    large_batch: int = 100
    coins: int = 0

    durable: ClassVar[bool] = False
    use_when: ClassVar[str] = "if a large batch is affordable now and then, and no momentum is to be tuned"

    def __post_init__(self) -> None:
        require_positive("learning_rate", self.learning_rate)
        require_count("period", self.period)
        require_count("large_batch", self.large_batch)
        require_count("coins", self.coins, least=0)

    def outer_batch(self, t: int, plan: Plan) -> int:
        """Return B' if the coin says so, else b."""
        return self.large_batch if self.starts_anew(t) else plan.outer_batch

    def starts_anew(self, t: int) -> bool:
        """Throw the coin of step t."""
        return t == 0 or int(torch.randint(self.period, (), generator=stream(self.coins, COINS, t))) == 0

    def init(self, x: Tree) -> Server:
        """Return x and u; step 0 sets u."""
        return Server({"x": x, "u": zeros_like(x)})

    def receive(self, shared: dict[str, Tree], local: dict[str, Tree] | None) -> State:
        """Take the server's x as the previous iterate if the client has none."""
        return State(shared, local or {"previous": shared["x"]})

    def step(self, state: State, oracle: Oracle, batch: Batch, t: int) -> State:
        """Take a new gradient if the coin says so, otherwise update the last one."""
        x, u = state.shared["x"], state.shared["u"]
        gradient = oracle.grad(x, batch)
        if self.starts_anew(t):
            u = gradient
        else:
            u = add_scaled(u, subtract(gradient, oracle.grad(state.local["previous"], batch)), 1.0)
        return State({"x": oracle.move(x, u, at(self.learning_rate, t)), "u": u}, {"previous": x})
