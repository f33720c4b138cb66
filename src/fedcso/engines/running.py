"""Run a method: the one way in, whatever the engine."""

from collections.abc import Sequence

from fedcso.core.algorithm import Algorithm
from fedcso.core.codec import Codec, full
from fedcso.core.estimator import Estimator
from fedcso.core.plan import Plan
from fedcso.core.registry import Registry
from fedcso.core.task import Task
from fedcso.core.trace import Trace
from fedcso.engines.engine import Engine
from fedcso.engines.job import Job
from fedcso.engines.loop import Callback, drive
from fedcso.engines.snapshot import Snapshot
from fedcso.estimators.plain import plain

ENGINES: Registry[Engine] = Registry(
    "engine",
    "fedcso.engines",
    {
        "simulation": "simulation:ENGINE",
        "stacked": "stacked:ENGINE",
        "compiled": "compiled:ENGINE",
        "threads": "threads:ENGINE",
        "reference": "reference:ENGINE",
        "distributed": "distributed:ENGINE",
    },
)
"""Every engine by name. A new one is a file and a row here."""


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
    """Run one method on a task and return its trace; raise what broke it off.

    `engine` is a name in `ENGINES` or an engine itself. `codec` is how what the method shares travels
    (`fedcso.codecs`). `callbacks` are told of every round. `start` is a snapshot of an earlier run, from which this one
    goes on.
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
    """Run several settings of one method, each for several seeds, and return `traces[setting][seed]`.

    The other arguments are those of `run`. A setting that diverges does not stop the others: its trace ends there and
    says why in `failure`.
    """
    job = Job(algorithms[0], task, plan, seeds[0], estimator, device, codec)
    with named(engine).start(algorithms, job, seeds) as rounds:
        traces = drive(rounds, callbacks, start)
    return [traces[g * len(seeds) : (g + 1) * len(seeds)] for g in range(len(algorithms))]


def named(engine: str | Engine) -> Engine:
    """Return the engine of that name, or the engine itself."""
    return engine if isinstance(engine, Engine) else ENGINES[engine]
