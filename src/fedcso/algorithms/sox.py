"""SOX: stochastic optimisation of coupled compositions, with one tracked inner value for EACH ξ.

    y_i ← (1 − γ) y_i + γ ĝ(x_t, ξ_i)                for the ξ_i of the step's batch; the others stay as they are
    z_{t+1} = (1/b) Σ_i ∇ĝ(x_t, ξ_i)ᵀ ∇f_{ξ_i}(y_i)
    u_{t+1} = (1 − β) u_t + β z_{t+1}
    x_{t+1} = Π_X( x_t − α u_{t+1} ),       x and u averaged over clients after every q steps

For finitely many ξ, each met again and again: then y_i forgets the noise of small inner batches, for the price of a
state that grows with the data. y_i = ĝ at first sight, u_1 = z_1. Sends x and u. Keeps all y_i.

Reference: Wang, Yang, Finite-Sum Coupled Compositional Stochastic Optimization: Theory and Applications, ICML 2022.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from fedcso.core.algorithm import Algorithm, Schedule, Server, State, at
from fedcso.core.errors import FedcsoError, require_fraction, require_positive
from fedcso.core.oracle import Oracle
from fedcso.core.plan import Plan
from fedcso.core.problem import Batch, FiniteOuter, Problem
from fedcso.core.streams import stream
from fedcso.core.tree import Tree, Weight, index, leaves, map_leaves, mix, numel, zeros_like

MOST_NUMBERS = 50_000_000
"""A client's table of y_i may hold this many numbers: 200 MB in float32."""


@dataclass(frozen=True)
class SOX(Algorithm):
    """One tracked inner value for each ξ, with momentum; for finitely many ξ.

    learning_rate is α, tracking is γ, momentum is β (1 for none).
    """

    learning_rate: Schedule = 0.01
    tracking: Schedule = 0.5
    momentum: Schedule = 0.1
    stacks: ClassVar[bool] = False
    tracks: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_positive("learning_rate", self.learning_rate)
        require_fraction("tracking", self.tracking)
        require_fraction("momentum", self.momentum)

    def check(self, plan: Plan, problem: Problem, clients: Sequence[Any]) -> None:
        """Finitely many ξ, and room for a state of each."""
        require_room_for_each(problem, clients)

    def init(self, x: Tree) -> Server:
        """u is set by the first step."""
        return Server({"x": x, "u": zeros_like(x)})

    def step(self, state: State, oracle: Oracle, batch: Batch, t: int) -> State:
        """Track each ξ's own value, average, descend."""
        x, u = state.shared["x"], state.shared["u"]
        z, local = track_each(state.local, oracle, x, batch, at(self.tracking, t))
        u = z if t == 0 else mix(u, z, at(self.momentum, t))
        return State({"x": oracle.move(x, u, at(self.learning_rate, t)), "u": u}, local)


def require_room_for_each(problem: Problem, clients: Sequence[Any]) -> None:
    """Refuse what a state for each ξ can't be kept for."""
    for number, data in enumerate(clients):
        if not problem.trains(data):
            continue
        count = problem.outer_count(data) if isinstance(problem, FiniteOuter) else None
        if count is None:
            raise FedcsoError(
                f"a state for each ξ can't be kept here: the outer samples of {type(problem).__name__} are never "
                "the same twice; use FCSG-M, which keeps none, or a problem with finitely many (for maml: tasks)"
            )
        size = _numbers_in_a_state(problem, data)
        if count * size > MOST_NUMBERS:
            raise FedcsoError(
                f"client {number} has {count:,} outer samples (for maml: tasks), and a state of {size:,} numbers "
                f"for each would take {4e-9 * count * size:.1f} GB in float32; at most {MOST_NUMBERS // size:,} "
                "are possible: take fewer, or FCSG-M, which keeps none"
            )


def track_each(
    local: dict[str, Tree], oracle: Oracle, x: Tree, batch: Batch, weight: Weight
) -> tuple[Tree, dict[str, Tree]]:
    """The gradient estimate z_{t+1} that the tracked values give, and the table with those of the batch renewed."""
    g_hat, chain = oracle.inner(x, batch, each=True)
    assert isinstance(oracle.problem, FiniteOuter)  # `check` has asked for it
    which = oracle.problem.which(batch.xi)
    table = local or _nothing_seen(g_hat, oracle.outer_count)
    y = map_leaves(
        lambda known, new: torch.where(_like(table["seen"][which], new), known, new),
        mix(index(table["y"], which), g_hat, weight),
        g_hat,
    )
    return chain(y), _remember(table, which, y)


def _numbers_in_a_state(problem: Problem, data: Any) -> int:
    """How many numbers ĝ has for one ξ."""
    xi = problem.sample_outer(data, stream(0, 0, 0), (1,))
    eta = problem.sample_inner(data, stream(0, 0, 0), xi, 1)
    return numel(problem.inner(problem.init(stream(0, 0, 0)), xi, eta))


def _nothing_seen(g_hat: Tree, count: int | None) -> dict[str, Tree]:
    assert count is not None  # `check` has refused the rest
    table = map_leaves(lambda leaf: leaf.new_zeros(count, *leaf.shape[1:]), g_hat)
    return {"y": table, "seen": torch.zeros(count, dtype=torch.bool, device=leaves(g_hat)[0].device)}


def _remember(local: dict[str, Tree], which: torch.Tensor, y: Tree) -> dict[str, Tree]:
    """The table with new values; of a ξ that is twice in the batch the later counts."""
    later = (which.unsqueeze(0) == which.unsqueeze(1)).int() * torch.arange(1, len(which) + 1, device=which.device)
    last = later.argmax(1)

    def put(table: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        return table.index_put((which,), values[last])

    return {"y": map_leaves(put, local["y"], y), "seen": local["seen"].index_fill(0, which, True)}


def _like(flags: torch.Tensor, leaf: torch.Tensor) -> torch.Tensor:
    """Flags of ξ, shaped to go with a leaf that has one entry for each."""
    return flags.reshape(-1, *[1] * (leaf.ndim - 1))
