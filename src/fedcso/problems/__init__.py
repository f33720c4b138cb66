"""Objectives of the form f(E[g]), one a file; and the table of the tasks that they make."""

from collections.abc import Callable

from fedcso.core.task import Task
from fedcso.problems import (
    auprc,
    auroc,
    classification,
    cross_entropy,
    invariant_logistic,
    maml,
    nested_quadratic,
    pretraining,
)
from fedcso.problems.auprc import AUPRC
from fedcso.problems.auroc import AUROC
from fedcso.problems.classification import Classification
from fedcso.problems.cross_entropy import CrossEntropy
from fedcso.problems.invariant_logistic import InvariantLogistic
from fedcso.problems.maml import MAML
from fedcso.problems.nested_quadratic import NestedQuadratic

PROBLEMS: dict[str, Callable[..., Task]] = {
    "invariant_logistic": invariant_logistic.invariant_logistic,
    "nested_quadratic": nested_quadratic.nested_quadratic,
    "classification": classification.classification,
    "maml": maml.maml,
    "pretraining": pretraining.pretraining,
    "auprc": auprc.auprc,
    "auroc": auroc.auroc,
    "cross_entropy": cross_entropy.cross_entropy,
}
"""By name, the function that makes a problem and its data; its arguments are the command line's options."""

__all__ = [
    "AUPRC",
    "AUROC",
    "MAML",
    "PROBLEMS",
    "Classification",
    "CrossEntropy",
    "InvariantLogistic",
    "NestedQuadratic",
]
