"""Run a method with any engine."""

from collections.abc import Sequence

from fedcso.core.algorithm import Algorithm
from fedcso.core.codec import Codec, full
from fedcso.core.estimator import Estimator
from fedcso.core.plan import Plan
from fedcso.core.task import Task
from fedcso.core.trace import Trace
from fedcso.engines import ENGINES
from fedcso.engines.engine import Engine
from fedcso.engines.job import Job
from fedcso.engines.loop import Callback, run_rounds
from fedcso.engines.snapshot import Snapshot
from fedcso.estimators.plain import plain


def run(
    algorithm: Algorithm,
    task: Task,
    plan: Plan,
    seed: int = 0,
    *,
    engine: str | Engine = "simulation",
    estimator: Estimator = plain,
    codec: Codec = full,
    device: str = "cpu",
    callbacks: Sequence[Callback] = (),
    start: Snapshot | None = None,
) -> Trace:
    """Run one method on a task and return its trace; raise the error if the run fails.

    `engine` is a name in `ENGINES` or an engine. `codec` encodes what the method shares (`fedcso.codecs`). `callbacks`
    are called after every round. `start` is a snapshot of an earlier run to continue from.
    """
    (((trace,),)) = run_grid(
        [algorithm],
        task,
        plan,
        [seed],
        engine=engine,
        estimator=estimator,
        codec=codec,
        device=device,
        callbacks=callbacks,
        start=start,
    )
    if trace.failure:
        raise trace.failure
    return trace


def run_grid(
    algorithms: Sequence[Algorithm],
    task: Task,
    plan: Plan,
    seeds: Sequence[int] = (0,),
    *,
    engine: str | Engine = "stacked",
    estimator: Estimator = plain,
    codec: Codec = full,
    device: str = "cpu",
    callbacks: Sequence[Callback] = (),
    start: Snapshot | None = None,
) -> list[list[Trace]]:
    """Run several settings of one method, each with several seeds, and return `traces[setting][seed]`.

    The other arguments are those of `run`. A run that fails does not stop the others: its trace ends there, with the
    reason in `failure`.
    """
    job = Job(algorithms[0], task, plan.for_task(task), seeds[0], estimator, device, codec)
    with named(engine).start(algorithms, job, seeds) as rounds:
        traces = run_rounds(rounds, callbacks, start)
    return [traces[g * len(seeds) : (g + 1) * len(seeds)] for g in range(len(algorithms))]


def named(engine: str | Engine) -> Engine:
    """Return the engine with this name, or the engine itself."""
    return engine if isinstance(engine, Engine) else ENGINES[engine]
