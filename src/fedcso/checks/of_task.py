"""What is expected of a task and its problem."""

from collections.abc import Iterator
from typing import Any

from fedcso.checks import gradients, means, metrics, randomness, running, shapes
from fedcso.checks.finding import Check, Finding
from fedcso.checks.specimen import Specimen, difference, tolerance
from fedcso.core.errors import FedcsoError
from fedcso.core.judge import measure_nothing
from fedcso.core.task import Task
from fedcso.core.user_errors import describe_error, describe_shapes


def find_in_making(specimen: Specimen) -> Iterator[Finding]:
    """Make the task."""
    try:
        task: Any = specimen.task  # whatever a user's function returns
    except FedcsoError as error:
        yield Finding(str(error))
        return
    except Exception as error:
        yield Finding(describe_error(error))
        return
    if not isinstance(task, Task):
        yield Finding(f"the function returns a {type(task).__name__} where a fedcso.Task is needed")
    elif not task.able:
        yield Finding("no client has training data: give the task at least one for which the problem's trains is True")


def find_in_projection(specimen: Specimen) -> Iterator[Finding]:
    """Project twice."""
    project = specimen.problem.project
    assert project is not None  # otherwise the check does not apply
    once = project(specimen.x)
    if describe_shapes(once) != describe_shapes(specimen.x):
        yield Finding(
            f"project returns {describe_shapes(once)} for x of {describe_shapes(specimen.x)}: return a point of the "
            "same shapes"
        )
    elif difference(project(once), once) > tolerance(once):
        yield Finding("project moves a point that is projected already: return the nearest point of X")


RUNS = ("random numbers", "values", "finite")
"""What must be right for runs to be compared."""

TASK_CHECKS: tuple[Check[Specimen], ...] = (
    Check("task", "it is made, and has clients that train", find_in_making),
    Check("x_0", "init returns a finite point", shapes.find_in_start, ["task"]),
    Check("samples", "ξ and η have the axes that are asked for, and m inner samples", shapes.find_in_samples, ["x_0"]),
    Check(
        "projection",
        "projecting twice changes nothing",
        find_in_projection,
        ["x_0"],
        lambda one: one.problem.project is not None,
    ),
    Check(
        "random numbers",
        "samples come from the given generator alone, and are the same twice",
        randomness.find_in_draws,
        ["samples"],
    ),
    Check("inner", "there is one value for each ξ, whatever m is", shapes.find_in_inner, ["samples"]),
    Check("outer", "there is one loss for each ξ", shapes.find_in_outer, ["inner"]),
    Check("values", "inner and outer depend on their arguments alone", randomness.find_in_values, ["outer"]),
    Check("mean inside", "inner is the mean over the inner samples", means.find_mean_elsewhere, ["values"]),
    Check("each ξ", "the value and loss of one ξ do not depend on the others", means.find_mixed, ["values"]),
    Check("finite", "losses are finite at x_0 and near it", shapes.find_non_finite, ["outer"]),
    Check("gradient", "it agrees with differences of the loss", gradients.find_in_gradient, ["values", "finite"]),
    Check(
        "closed form",
        "it agrees with automatic differentiation",
        gradients.find_in_closed_form,
        ["finite"],
        lambda one: one.problem.closed_form is not None,
    ),
    Check(
        "exact",
        "its gradient is that of its F",
        gradients.find_in_exact,
        ["x_0"],
        lambda one: one.problem.exact is not None,
    ),
    Check(
        "metrics",
        "evaluate returns what is declared, with directions that fit",
        metrics.find_in_metrics,
        ["x_0"],
        lambda one: bool(one.task.judge.metrics) or one.task.judge.evaluate is not measure_nothing,
    ),
    Check("engines", "clients in one pass and one after the other agree", running.find_in_engines, RUNS),
    Check("resume", "an interrupted run goes on to the same bits", running.find_in_resuming, RUNS),
    Check("pickling", "the problem can be sent to other processes", running.find_in_pickle, ["task"]),
)
"""In the order in which they are carried out."""
