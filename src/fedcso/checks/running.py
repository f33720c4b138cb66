"""Short runs: engines agree, and a run that is interrupted goes on as if it had not been."""

import pickle
from collections.abc import Iterator, Sequence

from fedcso.algorithms.fcsg import FCSG
from fedcso.checks.finding import Finding, remark
from fedcso.checks.specimen import Specimen, difference, tolerance
from fedcso.core.algorithm import Algorithm
from fedcso.core.estimator import Estimator
from fedcso.core.oracle import Oracle
from fedcso.core.plan import Plan
from fedcso.core.task import Task
from fedcso.core.trace import Trace
from fedcso.core.tree import norm
from fedcso.engines import run, stacked
from fedcso.engines.job import Job
from fedcso.engines.loop import Callback, Progress
from fedcso.engines.snapshot import from_bytes, to_bytes
from fedcso.estimators.plain import plain

STRIDE = 0.03
"""The first step of a run, relative to x_0 or to 1: far enough to see differences, too short to diverge."""

ROUNDS = 3
PLAN = Plan(rounds=ROUNDS, local_steps=2, outer_batch=2, inner_batch=4, participation=0.7)


def find_in_engines(specimen: Specimen) -> Iterator[Finding]:
    """Compare all clients at once with one after the other, on a task."""
    task, plan = _short(specimen.task), PLAN.for_task(specimen.task)
    method = gentle(specimen)
    if not stacked.possible(Job(method, task, plan)):
        yield remark(
            "clients run in threads, not stacked in one pass, because torch.func.vmap can't map it over clients"
        )
        return
    if (apart := apart_from_reference(method, task, plan)) > tolerance(specimen.x):
        why = "leave out broadcasts = True, or " if task.problem.broadcasts else ""
        yield Finding(
            f"several clients in one pass end {apart:.1%} away from one after the other: {why}use what is in x, ξ "
            "and η alone, and axes that are counted from the end"
        )


def gentle(specimen: Specimen) -> FCSG:
    """Return a method whose first steps are short, however steep the problem is."""
    gradient = norm(Oracle(specimen.problem, plain).grad(specimen.x, specimen.batch))
    return FCSG(learning_rate=STRIDE * max(float(norm(specimen.x)), 1.0) / max(float(gradient), 1e-6))


def find_in_resuming(specimen: Specimen) -> Iterator[Finding]:
    """Interrupt a run on a task, and make the task again."""
    task = _short(specimen.task)
    if not resumes(gentle(specimen), task, PLAN.for_task(task)):
        yield Finding(
            "a run that is interrupted and resumed ends elsewhere: keep nothing in the problem that changes from "
            "call to call, such as counters or caches of samples"
        )
    if specimen.make().digest() != specimen.task.digest():
        yield Finding(
            "the task has other data each time it is made, and fedcso resume refuses these: seed what generates "
            "them, as with fedcso.stream(seed=0, client=n, round=0)"
        )


def find_in_pickle(specimen: Specimen) -> Iterator[Finding]:
    """Copy the problem to another process, so to speak."""
    try:
        pickle.loads(pickle.dumps(specimen.problem))
    except Exception as error:
        yield remark(
            f"the problem can't be pickled ({type(error).__name__}: {error}); fedcso does not need it, but tools that "
            "start processes do: use functions of the module instead of lambdas"
        )


def apart_from_reference(algorithm: Algorithm, task: Task, plan: Plan, estimator: Estimator = plain) -> float:
    """Return the relative difference of the last models of the engines stacked and reference."""
    one, two = (run(algorithm, task, plan, engine=engine, estimator=estimator) for engine in ("stacked", "reference"))
    return difference(one.shared, two.shared)


def resumes(algorithm: Algorithm, task: Task, plan: Plan, engine: str = "reference") -> bool:
    """Return whether a run from a snapshot, written as in a checkpoint, ends exactly like the whole run."""
    kept: list[bytes] = []

    def keep(progress: Progress) -> None:
        kept.append(to_bytes(progress.snapshot()))

    def go(callbacks: Sequence[Callback] = (), **start: object) -> Trace:
        return run(algorithm, task, plan, engine=engine, callbacks=callbacks, **start)  # type: ignore[arg-type]

    whole = go([keep])
    return difference(go(start=from_bytes(kept[0])).shared, whole.shared) == 0


def _short(task: Task) -> Task:
    """Return the task with at most three of its clients, and nothing to evaluate."""
    some = [task.clients[n] for n in task.able[:3]]
    return Task(task.problem, some, start=task.start, weights=task.weights)
