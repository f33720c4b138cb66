"""BSpiderBoost: variance reduction by periodic large batches, on one machine.

    u_t = (1/B') Σ_{i≤B'} ∇F̂(x_t; ξ_i, B_i)                                        if t mod period = 0
    u_t = u_{t−1} + (1/b) Σ_{i≤b} ( ∇F̂(x_t; ξ_i, B_i) − ∇F̂(x_{t−1}; ξ_i, B_i) )    otherwise
    x_{t+1} = Π_X( x_t − α u_t )

Both gradients of a difference are taken on the same samples. The client sends x and u, and keeps x_{t−1}. It requires
N = 1 and q = 1; other plans are refused. With period 1 it is BSGD with batch B'.

Reference: Hu et al., Biased Stochastic First-Order Methods for Conditional Stochastic Optimization
and Applications in Meta Learning, NeurIPS 2020.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from fedcso.core.algorithm import Algorithm, Schedule, Server, State, at
from fedcso.core.errors import require_count, require_positive
from fedcso.core.oracle import Oracle
from fedcso.core.plan import Plan, require_single_machine
from fedcso.core.problem import Batch, Problem
from fedcso.core.tree import Tree, add_scaled, subtract, zeros_like


@dataclass(frozen=True)
class BSpiderBoost(Algorithm):
    """Biased SpiderBoost on one machine: variance reduction by periodic large batches.

    learning_rate is α, large_batch is B', drawn every `period` steps.
    """

    learning_rate: Schedule = 0.01
    period: int = 10
    large_batch: int = 100

    durable: ClassVar[bool] = False
    use_when: ClassVar[str] = "on pooled data, if a large batch is affordable now and then"

    def __post_init__(self) -> None:
        require_positive("learning_rate", self.learning_rate)
        require_count("period", self.period)
        require_count("large_batch", self.large_batch)

    def check(self, plan: Plan, problem: Problem, clients: Sequence[Any]) -> None:
        """Raise `InvalidValue` unless there is one client and q = 1."""
        require_single_machine("BSpiderBoost", plan, len(clients))

    def outer_batch(self, t: int, plan: Plan) -> int:
        """Return B' at the start of a period, else b."""
        return self.large_batch if t % self.period == 0 else plan.outer_batch

    def init(self, x: Tree) -> Server:
        """Return x and u; step 0 sets u."""
        return Server({"x": x, "u": zeros_like(x)})

    def receive(self, shared: dict[str, Tree], local: dict[str, Tree] | None) -> State:
        """Take x as the previous iterate at the start."""
        return State(shared, local or {"previous": shared["x"]})

    def step(self, state: State, oracle: Oracle, batch: Batch, t: int) -> State:
        """Take a new gradient at the start of a period, otherwise update the last one."""
        x, u = state.shared["x"], state.shared["u"]
        gradient = oracle.grad(x, batch)
        if t % self.period == 0:
            u = gradient
        else:
            u = add_scaled(u, subtract(gradient, oracle.grad(state.local["previous"], batch)), 1.0)
        return State({"x": oracle.move(x, u, at(self.learning_rate, t)), "u": u}, {"previous": x})
