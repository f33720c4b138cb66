"""Rounds of a method, stage by stage: is what each returns what the next one expects?"""

from collections.abc import Iterator
from typing import Any

import torch

from fedcso.checks.finding import Finding
from fedcso.checks.trials import Trial
from fedcso.core.algorithm import Algorithm, Server, State, bind_schedules
from fedcso.core.oracle import Oracle
from fedcso.core.problem import FiniteOuter, split_steps
from fedcso.core.streams import START, stream
from fedcso.core.task import fingerprint
from fedcso.core.tree import Tree
from fedcso.core.user_errors import describe_shapes
from fedcso.estimators.plain import plain

ROUNDS = 3


def find_in_rounds(method: Algorithm, trial: Trial) -> Iterator[Finding]:
    """Play rounds, and stop at the first stage that returns something else than expected."""
    for found in _play(bind_schedules(method, trial.plan), trial):
        if found:
            yield from found
            return


def _play(method: Algorithm, trial: Trial) -> Iterator[list[Finding]]:
    """Play one client and the server; yield after every stage what is wrong with what it returned."""
    name, task, plan = trial
    problem, data = task.problem, task.clients[0]
    count = problem.outer_count(data) if isinstance(problem, FiniteOuter) else None
    oracle = Oracle(problem, plain, outer_count=count)
    x = task.starting_point(stream(0, START, 0))
    local: dict[str, Tree] | None = None
    server = method.init(x)
    yield list(_wrong("init", server, Server, x, name))
    for round in range(ROUNDS):
        state = method.receive(server.shared, local)
        yield list(_wrong("receive", state, State))
        for t in plan.steps(round):
            drawn = plain.draw(problem, data, stream(0, 0, t), 1, method.outer_batch(t, plan), plan.inner_batch)
            given, before = state, fingerprint(state)
            state = method.step(given, oracle, split_steps(drawn.batch, 1)[0], t)
            yield list(_wrong("step", state, State, x, name))
            if fingerprint(given) != before:
                yield [Finding("step changes tensors of the state that it is given: make new ones, not add_ or +=")]
        state = method.send(state, plan.steps(round))
        yield list(_wrong("send", state, State))
        if method.pooled:  # the engines put together what is pooled
            return
        local = state.local if method.durable else None
        server = method.aggregate(server, state.shared, torch.ones((), dtype=torch.float64))
        yield list(_wrong("aggregate", server, Server, x, name))


def _wrong(stage: str, found: Any, kind: type[Any], x: Tree = None, where: str = "") -> Iterator[Finding]:
    """Check the type of what a stage returned, and the model in it if x is given."""
    if not isinstance(found, kind):
        yield Finding(f"{stage} returns a {type(found).__name__}: return a fedcso.{kind.__name__}")
    elif x is not None and "x" not in found.shared:
        yield Finding(f"{stage} does not return the model: return {kind.__name__}({{'x': x, …}})")
    elif x is not None and describe_shapes(found.shared["x"]) != describe_shapes(x):
        yield Finding(
            f"{stage} returns x with shapes {describe_shapes(found.shared['x'])} instead of {describe_shapes(x)} (on "
            f"{where}): x keeps its shapes"
        )
