"""CODA+: communication-efficient stages of proximal local steps for min-max problems (AUROC).

    stage s:   anchor ← v at its start,   η = η₀ / 3^s
    v ← v − η ( ∇_v f + (v − anchor) / γ ),      y ← y + η ∂_y f,       v AND y averaged after every q steps

v is the primal part of x and y the dual part (a number), so the problem's x must be {"primal": …, "dual": …}. Clients
send x, and keep the anchor: their v when the stage began, or when they first took part in it.

References: Guo et al., Communication-Efficient Distributed Stochastic AUC Maximization with Deep Neural Networks, ICML
2020; Yuan et al., Federated Deep AUC Maximization for Heterogeneous Data with a Constant Communication Complexity, ICML
2021.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

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
    """The steps of a stage, after which the anchor is renewed and the step size divided by three."""

    use_when: ClassVar[str] = "for AUROC as a min-max problem"

    def __post_init__(self) -> None:
        require_positive("learning_rate", self.learning_rate)
        require_positive("proximity", self.proximity)
        require_count("stage_steps", self.stage_steps)

    def check(self, plan: Plan, problem: Problem, clients: Sequence[Any]) -> None:
        """Raise `FedcsoError` unless x has a primal and a dual part."""
        require_saddle("CODA+", problem)

    def receive(self, shared: dict[str, Tree], local: dict[str, Tree] | None) -> State:
        """Mark a new client, which has no anchor yet, by the stage −1."""
        return State(shared, local or without_anchor(shared["x"]))

    def step(self, state: State, oracle: Oracle, batch: Batch, t: int) -> State:
        """Descend on v, with the proximal term of the anchor, and ascend on y."""
        x = state.shared["x"]
        moved, local = self.move_in_stage(x, oracle.grad(x, batch), state.local, oracle, t)
        return State({"x": moved}, local)

    def move_in_stage(
        self, x: Tree, direction: Tree, local: dict[str, Tree], oracle: Oracle, t: int
    ) -> tuple[Tree, dict[str, Tree]]:
        """Return x after a step along the direction and the proximal term, and the anchor and stage to keep."""
        stage = t // self.stage_steps
        is_current = local["stage"] == stage
        anchor = map_leaves(
            lambda old, new: torch.where(
                is_current.reshape(is_current.shape + (1,) * (new.ndim - is_current.ndim)), old, new
            ),
            local["anchor"],
            x["primal"],
        )
        primal = add_scaled(direction["primal"], subtract(x["primal"], anchor), at(self.proximity, t))
        rate = at(self.learning_rate, t) / 3**stage
        moved = oracle.move(x, {"primal": primal, "dual": direction["dual"]}, rate)
        return moved, {"anchor": anchor, "stage": torch.full_like(local["stage"], stage)}


def without_anchor(x: Tree) -> dict[str, Tree]:
    """Return what a client keeps that has no anchor yet: its first step takes one, because no stage is −1."""
    return {"anchor": x["primal"], "stage": torch.full_like(leaves(x["dual"])[0], -1)}


def require_saddle(method: str, problem: Problem) -> None:
    """Raise `FedcsoError` unless x has a primal and a dual part."""
    x = problem.init(stream(0, 0, 0))
    if not (isinstance(x, dict) and x.keys() == {"primal", "dual"}):
        raise FedcsoError(
            f"{method} can't be used with {type(problem).__name__}: it needs a min-max problem such as auroc, "
            "whose x is {'primal': …, 'dual': …}"
        )
