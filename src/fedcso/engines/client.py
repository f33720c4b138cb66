"""One round at one client: what happens between two messages."""

from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

import torch

from fedcso.core.costs import Costs
from fedcso.core.errors import NonFinite
from fedcso.core.oracle import Oracle
from fedcso.core.problem import steps_of
from fedcso.core.streams import stream
from fedcso.core.tree import Tree, is_finite, named_leaves
from fedcso.engines.job import Job

DRAW_AHEAD = 64
"""Steps whose samples are drawn together: fewer, larger calls of the generator. Part of what defines
the samples, so it is the same for all engines."""


class Portion(NamedTuple):
    """Consecutive steps whose samples are drawn together, and their outer batch size."""

    steps: range
    outer_batch: int


def portions(job: Job, round: int) -> list[Portion]:
    """A round's steps in portions of equal batch size."""
    result = []
    by_size = groupby(job.plan.steps(round), key=lambda t: job.algorithm.outer_batch(t, job.plan))
    for size, group in by_size:
        steps = list(group)
        for first in range(0, len(steps), DRAW_AHEAD):
            part = steps[first : first + DRAW_AHEAD]
            result.append(Portion(range(part[0], part[-1] + 1), size))
    return result


@dataclass
class Reply:
    """What a client has after a round: `shared` goes to the server, the rest stays or is reported."""

    shared: dict[str, Tree]
    local: dict[str, Tree]
    costs: Costs
    train_loss: float
    output: Tree | None


def local_round(
    job: Job,
    client: int,
    round: int,
    shared: dict[str, Tree],
    local: dict[str, Tree] | None,
    output_step: int = -1,
) -> Reply:
    """q local steps of one client. Raises `NonFinite` naming the first quantity that breaks.

    The client's model after `output_step` is kept if that step is in this round.
    """
    losses: list[torch.Tensor] = []
    t = -1

    def stop(quantity: str) -> NonFinite:
        return NonFinite(quantity, client, round, t, job.seed)

    def watch(loss: torch.Tensor, gradient: Tree) -> None:
        if not torch.isfinite(loss):
            raise stop("loss")
        _check("gradient", gradient)
        losses.append(loss)

    def _check(quantity: str, tree: Tree) -> None:
        if not is_finite(tree):
            raise stop(next(f"{quantity} {name}".rstrip() for name, leaf in named_leaves(tree) if not is_finite(leaf)))

    rng = stream(job.seed, client, round)
    oracle = Oracle(job.problem, job.estimator, watch, job.plan.clip)
    output = None
    state = job.algorithm.receive(shared, local)
    for portion in portions(job, round):
        m = job.plan.inner_batch
        batch = oracle.draw(job.clients[client], rng, len(portion.steps), portion.outer_batch, m, job.device)
        for t, samples in zip(portion.steps, steps_of(batch, len(portion.steps)), strict=True):
            state = job.algorithm.step(state, oracle, samples, t)
            if t == output_step:
                output = state.shared["x"]
    state = job.algorithm.send(state, job.plan.steps(round))
    _check("update of", state.shared)
    return Reply(state.shared, state.local, oracle.costs, float(torch.stack(losses).mean()), output)
