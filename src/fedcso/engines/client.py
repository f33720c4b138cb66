"""What a client does in one round, between the server's message and its reply."""

from itertools import groupby
from typing import Any, NamedTuple

import torch

from fedcso.core.codec import Memory, Message
from fedcso.core.costs import Costs
from fedcso.core.errors import NonFinite
from fedcso.core.oracle import Oracle
from fedcso.core.problem import FiniteOuter, split_steps
from fedcso.core.streams import stream
from fedcso.core.tree import Tree, is_finite, named_leaves, nbytes, to_device
from fedcso.engines.work import Work

DRAW_AHEAD = 64
"""The most steps whose samples are drawn in one call of the generator. It affects which samples are drawn, so it is the
same for all engines."""


class Portion(NamedTuple):
    """Consecutive steps whose samples are drawn together, and their outer batch size."""

    steps: range
    outer_batch: int


def portions(work: Work, round: int) -> list[Portion]:
    """Split a round's steps into portions with equal outer batch sizes."""
    result = []
    by_size = groupby(work.plan.steps(round), key=lambda t: work.algorithm.outer_batch(t, work.plan))
    for size, group in by_size:
        steps = list(group)
        for first in range(0, len(steps), DRAW_AHEAD):
            part = steps[first : first + DRAW_AHEAD]
            result.append(Portion(range(part[0], part[-1] + 1), size))
    return result


class Client(NamedTuple):
    """A client between two rounds: its data, its local state and its memory of earlier messages."""

    number: int
    data: Any
    local: dict[str, Tree] | None = None
    """The method's local state; None before the first round and after it has expired."""
    memory: Memory | None = None
    """The codec's memory; None before the first round and after it has expired."""


class Reply(NamedTuple):
    """The result of a client's round: the message goes to the server, the local state and the memory stay."""

    message: Message
    local: dict[str, Tree]
    memory: Memory
    costs: Costs
    train_loss: float
    output: Tree | None


def local_round(work: Work, client: Client, round: int, message: Message, output_step: int = -1) -> Reply:
    """Run q local steps of one client and return its reply.

    The reply includes the client's model after `output_step` if that step is in this round. Raise `NonFinite`, naming
    the quantity, as soon as a loss, a gradient or the update is not finite.
    """
    losses: list[torch.Tensor] = []
    t = -1

    def stop(quantity: str) -> NonFinite:
        return NonFinite(quantity, client.number, round, t, work.seed)

    def watch(loss: torch.Tensor, gradient: Tree) -> None:
        if not torch.isfinite(loss):
            raise stop("loss")
        _check("gradient", gradient)
        losses.append(loss)

    def _check(quantity: str, tree: Tree) -> None:
        if not is_finite(tree):
            raise stop(next(f"{quantity} {name}".rstrip() for name, leaf in named_leaves(tree) if not is_finite(leaf)))

    problem, plan, now = work.problem, work.plan, work.round(round)
    count = problem.outer_count(client.data) if isinstance(problem, FiniteOuter) else None
    oracle = Oracle(problem, work.estimator, watch, plan.clip, count, plan.weight_decay)
    rng = stream(work.seed, client.number, round)
    output, costs = None, Costs()
    shared, memory = work.codec.receive(message, client.memory, now)
    state = work.algorithm.receive(shared, client.local)
    for steps, b in portions(work, round):
        drawn = work.estimator.draw(problem, client.data, rng, len(steps), b, plan.inner_batch)
        costs += drawn.costs
        for t, samples in zip(steps, split_steps(to_device(drawn.batch, work.device), len(steps)), strict=True):
            state = work.algorithm.step(state, oracle, samples, t)
            if t == output_step:
                output = state.shared["x"]
    state = work.algorithm.send(state, now.steps)
    answer, memory = work.codec.reply(state.shared, memory, now)
    _check("update of", work.codec.read(answer))
    costs += oracle.costs + Costs(bytes_up=nbytes(answer))
    return Reply(answer, state.local, memory, costs, float(torch.stack(losses).mean()), output)
