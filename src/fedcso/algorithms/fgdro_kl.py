"""FGDRO-KL: distributionally robust learning across clients, with tracked weights of the clients.

    l_n ← (1 − γ) l_n + γ ĝ(x_t)                          the client's loss, of which ĝ is the mean over m examples
    v ← (1 − δ) v + δ exp( (l_n − c)/λ )                  the mean over clients of these exponentials
    u_{t+1} = (1 − β) u_t + β exp( (l_n − c)/λ ) / v ∇ĝ(x_t)
    x_{t+1} = Π_X( x_t − α u_{t+1} ),       x, u and v averaged over clients after every q steps

It minimises λ log (1/N) Σ_n exp(L_n/λ) on the problem `robust`, whose temperature λ is. The weights exp(·)/v have mean
1 over clients, where those of ComFedL have no scale. δ should be small: as far as a client's own exponential is in v,
its weight is nearer to 1. As λ → ∞ all weights are 1, and it is FedAvg with momentum. With γ = δ = 1 all weights are 1
too. l_n = ĝ when a client first takes part; v_1 = exp((l_n − c)/λ), and u_1 is the
first gradient.

log v is kept instead of v, so that nothing overflows: the weight is f' at l_n − λ log v. Clients send x, u and the
ratio of their v to the one they received, whose mean multiplies it, and keep l_n; the server sends x, u and log v.

Reference: Guo, Yang, Communication-Efficient Federated Group Distributionally Robust Optimization, NeurIPS 2024. The
rule is written from memory of the paper's structure; its lines could not be verified.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from fedcso.algorithms.comfedl import require_exponential
from fedcso.core.algorithm import Algorithm, Schedule, Server, State, at
from fedcso.core.errors import require_fraction, require_positive
from fedcso.core.oracle import Oracle
from fedcso.core.plan import Plan
from fedcso.core.problem import Batch, Problem
from fedcso.core.tree import Tree, Weight, leaves, log_mix, mix, without, zeros_like


@dataclass(frozen=True)
class FGDROKL(Algorithm):
    """Distributionally robust learning across clients: each has a tracked loss, and a weight by it, for robust.

    learning_rate is α, tracking is γ, normalising is δ, momentum is β (1 for none); λ belongs to the problem.
    """

    learning_rate: Schedule = 0.01
    tracking: Schedule = 0.5
    normalising: Schedule = 0.1
    momentum: Schedule = 0.1
    use_when: ClassVar[str] = "as ComFedL, with weights that are tracked over steps"

    tracks: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_positive("learning_rate", self.learning_rate)
        require_fraction("tracking", self.tracking)
        require_fraction("normalising", self.normalising)
        require_fraction("momentum", self.momentum)

    def check(self, plan: Plan, problem: Problem, clients: Sequence[Any]) -> None:
        """Raise `FedcsoError` unless f(y) = λ exp((y − c)/λ)."""
        require_exponential("FGDRO-KL", problem)

    def init(self, x: Tree) -> Server:
        """Return x, u and an empty log v; the first step sets both."""
        return Server({"x": x, "u": zeros_like(x), "log_v": ()})

    def receive(self, shared: dict[str, Tree], local: dict[str, Tree] | None) -> State:
        """Mark a new client, whose l_n is not known, and remember the received log v for the end of the round."""
        nothing = zeros_like(shared["log_v"])
        return State(shared, (local or {"l": nothing, "known": nothing}) | {"start": shared["log_v"]})

    def step(self, state: State, oracle: Oracle, batch: Batch, t: int) -> State:
        """Update the client's loss, the mean of the exponentials and the momentum u, then descend."""
        x, u, log_v = (state.shared[name] for name in ("x", "u", "log_v"))
        problem = require_exponential("FGDRO-KL", oracle.problem)
        g_hat, chain = oracle.inner(x, batch)
        loss, known = state.local["l"], state.local["known"]
        loss = torch.where(known > 0, mix(loss, g_hat, at(self.tracking, t)), g_hat) if leaves(loss) else g_hat
        log_weight = problem.log_weight(loss)
        log_v = log_mix(log_v, log_weight, at(self.normalising, t)) if leaves(log_v) else log_weight
        z = chain(loss - problem.temperature * log_v)
        u = z if t == 0 else mix(u, z, at(self.momentum, t))
        moved = oracle.move(x, u, at(self.learning_rate, t))
        return State({"x": moved, "u": u, "log_v": log_v}, state.local | {"l": loss, "known": torch.ones_like(loss)})

    def send(self, state: State, steps: range) -> State:
        """Send the ratio of v to the one received, in the first round v: a mean of logarithms would be another."""
        log_v, start = state.shared["log_v"], state.local["start"]
        ratio = (log_v - start if leaves(start) else log_v).exp()
        return State(state.shared | {"log_v": ratio}, without(state.local, "start"))

    def aggregate(self, server: Server, mean: dict[str, Tree], fraction: Weight) -> Server:
        """Multiply v by the mean of the ratios."""
        before, log_ratio = server.shared["log_v"], mean["log_v"].log()
        return Server(mean | {"log_v": before + log_ratio if leaves(before) else log_ratio}, server.kept)
