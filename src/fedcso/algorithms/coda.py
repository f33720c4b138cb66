"""CODA+: communication-efficient stages of proximal local steps for min-max problems (AUROC).

    stage s:   anchor ← v at its start,   η = η₀ / 3^s
    v ← v − η ( ∇_v f + (v − anchor) / γ ),      y ← y + η ∂_y f,       v AND y averaged after every q steps

v is the primal part of x, y the dual one (a number), so the problem's x must be {"primal": …, "dual": …}. Sends x.
Keeps the stage's anchor: what the client had when the stage began, or when it first took part in it.

References: Guo et al., Communication-Efficient Distributed Stochastic AUC Maximization with Deep Neural Networks, ICML
2020; Yuan et al., Federated Deep AUC Maximization for Heterogeneous Data with a Constant Communication Complexity, ICML
2021.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from fedcso.core.algorithm import Algorithm, Schedule, State, at
from fedcso.core.errors import FedcsoError, require_count, require_positive
from fedcso.core.oracle import Oracle
from fedcso.core.plan import Plan
from fedcso.core.problem import Batch, Problem
from fedcso.core.streams import stream
from fedcso.core.tree import Tree, add_scaled, leaves, map_leaves, subtract


@dataclass(frozen=True)
class CODA(Algorithm):
    """Proximal descent-ascent in stages, for min-max problems such as auroc.

    learning_rate is η₀, proximity is 1/γ.
    """

    learning_rate: Schedule = 0.1
    proximity: Schedule = 0.01
    stage_steps: int = 1000
    """Steps of a stage; then the anchor is renewed and the step size divided by three."""

    def __post_init__(self) -> None:
        require_positive("learning_rate", self.learning_rate)
        require_positive("proximity", self.proximity)
        require_count("stage_steps", self.stage_steps)

    def check(self, plan: Plan, problem: Problem, clients: Sequence[Any]) -> None:
        """A min-max problem."""
        x = problem.init(stream(0, 0, 0))
        if not (isinstance(x, dict) and x.keys() == {"primal", "dual"}):
            raise FedcsoError(
                f"CODA+ is for min-max problems, whose x is {{'primal': …, 'dual': …}}, such as auroc; "
                f"{type(problem).__name__} is none"
            )

    def receive(self, shared: dict[str, Tree], local: dict[str, Tree] | None) -> State:
        """Who is new has no anchor yet."""
        x = shared["x"]
        return State(shared, local or {"anchor": x["primal"], "stage": torch.full_like(leaves(x["dual"])[0], -1)})

    def step(self, state: State, oracle: Oracle, batch: Batch, t: int) -> State:
        """Descent on v, held back by the anchor; ascent on y."""
        x = state.shared["x"]
        stage = t // self.stage_steps
        known = state.local["stage"] == stage
        anchor = map_leaves(
            lambda held, now: torch.where(known.reshape(known.shape + (1,) * (now.ndim - known.ndim)), held, now),
            state.local["anchor"],
            x["primal"],
        )
        gradient = oracle.grad(x, batch)
        held = add_scaled(gradient["primal"], subtract(x["primal"], anchor), at(self.proximity, t))
        rate = at(self.learning_rate, t) / 3**stage
        moved = oracle.move(x, {"primal": held, "dual": gradient["dual"]}, rate)
        return State({"x": moved}, {"anchor": anchor, "stage": torch.full_like(state.local["stage"], stage)})
