"""All clients on this machine, as fast as it can: `stacked` for small models, `threads` for networks."""

from collections.abc import Callable, Sequence
from typing import Any, Literal

from fedcso.core.algorithm import Algorithm
from fedcso.core.errors import require_choice
from fedcso.core.estimator import Estimator, plain
from fedcso.core.plan import Plan
from fedcso.core.problem import Problem
from fedcso.core.streams import stream
from fedcso.core.trace import Trace
from fedcso.core.tree import numel
from fedcso.engines import stacked, threads
from fedcso.engines.loop import OnRound
from fedcso.engines.snapshot import Snapshot

Execution = Literal["auto", "stacked", "threads"]

EXECUTIONS: dict[str, Callable[..., Trace]] = {"stacked": stacked.run, "threads": threads.run}

STACK_AT_MOST = 20_000
"""Parameters up to which stacking pays: beyond, operators are large enough to keep a core busy alone."""


def run(
    algorithm: Algorithm,
    problem: Problem,
    clients: Sequence[Any],
    plan: Plan,
    seed: int = 0,
    *,
    test: Any = None,
    estimator: Estimator = plain,
    device: str = "cpu",
    on_round: OnRound | None = None,
    start: Snapshot | None = None,
    execution: Execution = "auto",
) -> Trace:
    """Run one method; `execution` forces the way it is carried out."""
    require_choice("execution", execution, ("auto", *EXECUTIONS))
    if execution == "auto":
        execution = choose(algorithm, problem, clients, estimator)
    return EXECUTIONS[execution](
        algorithm,
        problem,
        clients,
        plan,
        seed,
        test=test,
        estimator=estimator,
        device=device,
        on_round=on_round,
        start=start,
    )


def choose(algorithm: Algorithm, problem: Problem, clients: Sequence[Any], estimator: Estimator = plain) -> Execution:
    """`stacked` if the model is small, and method and problem can deal with many clients at once."""
    small = numel(problem.init(stream(0, 0, 0))) <= STACK_AT_MOST
    return "stacked" if small and stacked.possible(algorithm, problem, clients, estimator) else "threads"
