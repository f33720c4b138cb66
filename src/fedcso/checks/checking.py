"""Check one's own problem, method or estimator: from Python, and by name as on the command line."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from fedcso.algorithms import ALGORITHMS
from fedcso.checks.finding import Check, Findings, Outcome, carry_out
from fedcso.checks.of_estimator import ESTIMATOR_CHECKS, EstimatorSpecimen
from fedcso.checks.of_method import METHOD_CHECKS, MethodSpecimen
from fedcso.checks.of_task import TASK_CHECKS
from fedcso.checks.specimen import Specimen
from fedcso.core import user_code
from fedcso.core.algorithm import Algorithm
from fedcso.core.errors import InvalidValue, UnknownName
from fedcso.core.estimator import Estimator
from fedcso.core.problem import Problem
from fedcso.core.task import Task
from fedcso.estimators import ESTIMATORS
from fedcso.problems import PROBLEMS
from fedcso.runs.methods import MethodSpec

ALLOWED = (
    "a fedcso.Task or a function that returns one, a fedcso.Algorithm or its class, or a fedcso.Estimator "
    "(a problem is checked with data, as part of a task)"
)


class Kind(NamedTuple):
    """A kind of things that can be checked."""

    checks: Sequence[Check[Any]]
    examine: Callable[[Callable[[], Any], Task | None], Any]
    """Takes a function that makes the thing, and a task to try it on; returns what the checks look at."""
    next_command: str
    """What to do if nothing is wrong, with the thing's name as {name}."""


TASK = Kind(TASK_CHECKS, lambda make, on: Specimen(make), "fedcso run {name}")
METHOD = Kind(METHOD_CHECKS, MethodSpecimen, "fedcso run invariant_logistic --algorithm '{name}' FCSG-M")
ESTIMATOR = Kind(
    ESTIMATOR_CHECKS, lambda make, on: EstimatorSpecimen(make()), "fedcso run invariant_logistic --estimator {name}"
)


def check(
    thing: Any,
    *,
    on: Task | None = None,
    tell: Callable[[Outcome], None] = lambda outcome: None,
    **options: Any,
) -> Findings:
    """Check a task, a method or an estimator, and return what was found; print it to see all of it.

    `thing` is a `Task` or a function that returns one (called with the `options`), a method or its class (made with
    the `options`), an `Estimator`, or the name of one of these: `my.py:task`, `my.py:Method(inertia=0.3)`. A method is
    tried `on` a task, or on two small ones that it accepts. `tell` is called after each check.

        findings = fedcso.check(task)
        assert findings.fine, findings
    """
    title = thing if isinstance(thing, str) else getattr(thing, "__name__", type(thing).__name__)
    found = find_named(thing) if isinstance(thing, str) else thing
    kind = kind_of(found, title)
    is_made = isinstance(found, Task | Algorithm | Estimator)
    if on is not None and kind is not METHOD:
        raise InvalidValue("on", type(on.problem).__name__, f"left out: {title} is no method")
    return carry_out(title, kind.checks, kind.examine(lambda: found if is_made else found(**options), on), tell)


def kind_of(thing: Any, title: str) -> Kind:
    """Return the kind of a thing; raise `InvalidValue` if it can't be checked."""
    if isinstance(thing, Estimator):
        return ESTIMATOR
    if isinstance(thing, Algorithm) or (isinstance(thing, type) and issubclass(thing, Algorithm)):
        return METHOD
    if isinstance(thing, Task) or (callable(thing) and not isinstance(thing, type | Problem)):
        return TASK
    raise InvalidValue("check", title, ALLOWED)


def find_named(name: str) -> Any:
    """Return what a name stands for: `path.py:name`, `module:name`, or something built in; settings are put in."""
    plain, bracket, _ = name.partition("(")
    if user_code.is_own(plain):
        found = user_code.load("check", plain)
    else:
        tables: dict[str, Any] = {known: table for table in (PROBLEMS, ALGORITHMS, ESTIMATORS) for known in table}
        if plain not in tables:
            raise UnknownName("name", plain, ["path.py:name", "module:name", *tables])
        found = tables[plain][plain]
    return MethodSpec.parse(name).build({}).algorithm if bracket else found
