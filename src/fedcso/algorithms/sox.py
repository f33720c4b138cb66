"""SOX: stochastic optimisation of coupled compositions, with one tracked inner value for EACH ξ.

    y_i ← (1 − γ) y_i + γ ĝ(x_t, ξ_i)                for the ξ_i of the step's batch; the others are unchanged
    z_{t+1} = (1/b) Σ_i ∇ĝ(x_t, ξ_i)ᵀ ∇f_{ξ_i}(y_i)
    u_{t+1} = (1 − β) u_t + β z_{t+1}
    x_{t+1} = Π_X( x_t − α u_{t+1} ),       x and u averaged over clients after every q steps

For finitely many ξ, each sampled many times: y_i averages out the noise of small inner batches, at the price of a state
that grows with the data. y_i = ĝ when ξ_i is first sampled, and u_1 = z_1. Clients send x and u, and keep all y_i.

Reference: Wang, Yang, Finite-Sum Coupled Compositional Stochastic Optimization: Theory and Applications, ICML 2022.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import torch

from fedcso.core.algorithm import Algorithm, Schedule, Server, State, at
from fedcso.core.errors import FedcsoError, require_fraction, require_positive
from fedcso.core.oracle import Oracle
from fedcso.core.plan import Plan
from fedcso.core.problem import Batch, FiniteOuter, Problem
from fedcso.core.streams import stream
from fedcso.core.tree import Tree, index, leaves, map_leaves, mix, numel, zeros_like

MOST_NUMBERS = 50_000_000
"""The largest table of y_i that a client may have: 200 MB in float32."""


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
    use_when: ClassVar[str] = "for finitely many ξ and small inner batches; it keeps an inner value for each"

    def __post_init__(self) -> None:
        require_positive("learning_rate", self.learning_rate)
        require_fraction("tracking", self.tracking)
        require_fraction("momentum", self.momentum)

    def check(self, plan: Plan, problem: Problem, clients: Sequence[Any]) -> None:
        """Raise `FedcsoError` unless there are finitely many ξ and their states fit into memory."""
        require_states_fit(type(self).__name__, problem, clients)

    def init(self, x: Tree) -> Server:
        """Return x and u; the first step sets u."""
        return Server({"x": x, "u": zeros_like(x)})

    def step(self, state: State, oracle: Oracle, batch: Batch, t: int) -> State:
        """Update the tracked values of the batch's ξ and the momentum u, then descend."""
        x, u = state.shared["x"], state.shared["u"]
        z, local = track_each(state.local, oracle, x, batch, partial(mix, weight=at(self.tracking, t)))
        u = z if t == 0 else mix(u, z, at(self.momentum, t))
        return State({"x": oracle.move(x, u, at(self.learning_rate, t)), "u": u}, local)


def require_states_fit(method: str, problem: Problem, clients: Sequence[Any]) -> None:
    """Raise `FedcsoError` unless each client has finitely many ξ and the states of all of them fit into memory."""
    for number, data in enumerate(clients):
        if not problem.trains(data):
            continue
        count = problem.outer_count(data) if isinstance(problem, FiniteOuter) else None
        if count is None:
            raise FedcsoError(
                f"{method} can't keep a state for each ξ: {type(problem).__name__} never draws the same outer sample "
                "twice; use FCSG-M, which keeps no such state, or a problem with finitely many outer samples (for "
                "maml: tasks)"
            )
        size = _numbers_in_a_state(problem, data) if count else 0
        if count * size > MOST_NUMBERS:
            raise FedcsoError(
                f"{method} can't keep a state for each ξ: client {number} has {count:,} outer samples (for maml: "
                f"tasks), and a state of {size:,} numbers for each would take {4e-9 * count * size:.1f} GB in float32; "
                f"use at most {MOST_NUMBERS // size:,} outer samples, or FCSG-M, which keeps no such state"
            )


def track_each(
    local: dict[str, Tree], oracle: Oracle, x: Tree, batch: Batch, renew: Callable[[Tree, Tree], Tree]
) -> tuple[Tree, dict[str, Tree]]:
    """Return the gradient estimate z_{t+1} at the tracked values, and the table with those of the batch updated.

    `renew` takes the old y_i and the ĝ of the batch's ξ, and returns their new y_i; at first sight y_i = ĝ.
    """
    g_hat, chain = oracle.inner(x, batch, each=True)
    y, table = track_values(local, oracle, batch, g_hat, renew)
    return chain(y), table


def track_values(
    local: dict[str, Tree], oracle: Oracle, batch: Batch, g_hat: Tree, renew: Callable[[Tree, Tree], Tree]
) -> tuple[Tree, dict[str, Tree]]:
    """Return y_i of the batch's ξ_i, given their ĝ, and the table with these y_i; an empty table is made first."""
    rows = rows_of(oracle, batch)
    table = local or {"y": empty_table(oracle, g_hat), "seen": _none_seen(oracle, g_hat)}
    y = map_leaves(
        lambda known, new: torch.where(_expand(table["seen"][rows], new), known, new),
        renew(index(table["y"], rows), g_hat),
        g_hat,
    )
    return y, {"y": put_rows(table["y"], rows, y), "seen": table["seen"].index_fill(0, rows, True)}


def rows_of(oracle: Oracle, batch: Batch) -> torch.Tensor:
    """Return the index of each of the batch's ξ among the client's."""
    assert isinstance(oracle.problem, FiniteOuter)  # `check` requires it
    return oracle.problem.which(batch.xi)


def share_of_rows(oracle: Oracle, rows: torch.Tensor) -> float:
    """Return the share of the client's ξ that are in the batch; one that is there twice counts once.

    ξ are drawn with replacement. Given how many different ones a batch has, it is a random subset of that size, as in
    papers that draw without replacement, where this share is b/n.
    """
    assert oracle.outer_count is not None  # `check` requires it
    return len(set(rows.tolist())) / oracle.outer_count


def empty_table(oracle: Oracle, g_hat: Tree) -> Tree:
    """Return y_i = 0 for all ξ of the client, given the ĝ of some of them."""
    return map_leaves(lambda leaf: leaf.new_zeros(oracle.outer_count, *leaf.shape[1:]), g_hat)


def put_rows(table: Tree, rows: torch.Tensor, y: Tree) -> Tree:
    """Return the table with new values in these rows; if a ξ is in the batch twice, the later value is taken."""
    later = (rows.unsqueeze(0) == rows.unsqueeze(1)).int() * torch.arange(1, len(rows) + 1, device=rows.device)
    last = later.argmax(1)
    return map_leaves(lambda leaf, values: leaf.index_put((rows,), values[last]), table, y)


def _numbers_in_a_state(problem: Problem, data: Any) -> int:
    """Return how many numbers ĝ has for one ξ."""
    xi = problem.sample_outer(data, stream(0, 0, 0), (1,))
    eta = problem.sample_inner(data, stream(0, 0, 0), xi, 1)
    return numel(problem.inner(problem.init(stream(0, 0, 0)), xi, eta))


def _none_seen(oracle: Oracle, g_hat: Tree) -> torch.Tensor:
    assert oracle.outer_count is not None  # `check` requires it
    return torch.zeros(oracle.outer_count, dtype=torch.bool, device=leaves(g_hat)[0].device)


def _expand(flags: torch.Tensor, leaf: torch.Tensor) -> torch.Tensor:
    """Reshape one flag per ξ to broadcast over a leaf with one entry per ξ."""
    return flags.reshape(-1, *[1] * (leaf.ndim - 1))
