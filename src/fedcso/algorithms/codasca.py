"""CODASCA: CODA+ with SCAFFOLD's control variates, which correct the drift of heterogeneous clients.

    stage s:   anchor ← v at its start,   η = η₀ / 3^s
    v ← v − η ( ∇_v f − c_n + c + (v − anchor) / γ ),      y ← y + η ( ∂_y f − k_n + k )
    after the round:   c_n⁺, k_n⁺ = means of ∇_v f and ∂_y f over the round's steps
    server:            v, y ← means,   c ← c + (|S|/N) mean (c_n⁺ − c_n),   k likewise,   over the round's clients S

v is the primal part of x and y the dual part, so the problem's x must be {"primal": …, "dual": …}; c and k are the
parts of one control variate of the same form. The proximal term does not enter it. Clients send x and c + (c_n⁺ − c_n),
and keep c_n and the anchor; the server sends x and c. c_n = c = 0 at first, so the first round is that of CODA+, and so
are all rounds of a single client. Without anchor and stages it is SCAFFOLD.

Reference: Yuan et al., Federated Deep AUC Maximization for Heterogeneous Data with a Constant Communication Complexity,
ICML 2021. The rule is that of the authors' public code with two exceptions: a stage starts from its last iterate, as in
CODA+, and not from the mean of its iterates, and neither gradients nor y are restricted to an interval.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from fedcso.algorithms.coda import CODA, require_saddle, without_anchor
from fedcso.core.algorithm import Server, State
from fedcso.core.oracle import Oracle
from fedcso.core.plan import Plan
from fedcso.core.problem import Batch, Problem
from fedcso.core.tree import Tree, Weight, add_scaled, map_leaves, mix, subtract, zeros_like


@dataclass(frozen=True)
class CODASCA(CODA):
    """CODA+ with control variates against the drift of heterogeneous clients, for min-max problems such as auroc.

    learning_rate is η₀, proximity is 1/γ.
    """

    use_when: ClassVar[str] = "as CODA+, for clients with different data"

    def check(self, plan: Plan, problem: Problem, clients: Sequence[Any]) -> None:
        """Raise `FedcsoError` unless x has a primal and a dual part."""
        require_saddle("CODASCA", problem)

    def init(self, x: Tree) -> Server:
        """Return x and c = 0."""
        return Server({"x": x, "c": zeros_like(x)})

    def receive(self, shared: dict[str, Tree], local: dict[str, Tree] | None) -> State:
        """Start from c_n = 0 if the client has none, and prepare to sum up the round's gradients."""
        zero = zeros_like(shared["c"])
        kept = local or without_anchor(shared["x"]) | {"c_n": zero}
        return State(shared, kept | {"sum": zero})

    def step(self, state: State, oracle: Oracle, batch: Batch, t: int) -> State:
        """Take one corrected step of CODA+."""
        x, c, local = state.shared["x"], state.shared["c"], state.local
        gradient = oracle.grad(x, batch)
        corrected = add_scaled(gradient, subtract(c, local["c_n"]), 1.0)
        moved, anchored = self.move_in_stage(x, corrected, local, oracle, t)
        total = add_scaled(local["sum"], gradient, 1.0)
        return State({"x": moved, "c": c}, anchored | {"c_n": local["c_n"], "sum": total})

    def send(self, state: State, steps: range) -> State:
        """Update c_n and send its change."""
        c, local = state.shared["c"], state.local
        renewed = map_leaves(lambda leaf: leaf / len(steps), local["sum"])
        changed = add_scaled(c, subtract(renewed, local["c_n"]), 1.0)
        kept = {"anchor": local["anchor"], "stage": local["stage"], "c_n": renewed}
        return State({"x": state.shared["x"], "c": changed}, kept)

    def aggregate(self, server: Server, mean: dict[str, Tree], fraction: Weight) -> Server:
        """Add to c the mean change, scaled by the fraction of clients that took part."""
        return Server({"x": mean["x"], "c": mix(server.shared["c"], mean["c"], fraction)}, server.kept)
