"""Objectives of the form f(E[g]), one a file; and the table of the tasks that they make."""

from collections.abc import Callable

from fedcso.core.task import Task
from fedcso.problems.auprc import AUPRC, auprc
from fedcso.problems.auroc import AUROC, auroc
from fedcso.problems.classification import Classification, classification
from fedcso.problems.cross_entropy import CrossEntropy, cross_entropy
from fedcso.problems.invariant_logistic import InvariantLogistic, invariant_logistic
from fedcso.problems.maml import MAML, maml
from fedcso.problems.nested_quadratic import NestedQuadratic, nested_quadratic
from fedcso.problems.pretraining import pretraining

PROBLEMS: dict[str, Callable[..., Task]] = {
    "invariant_logistic": invariant_logistic,
    "nested_quadratic": nested_quadratic,
    "classification": classification,
    "maml": maml,
    "pretraining": pretraining,
    "auprc": auprc,
    "auroc": auroc,
    "cross_entropy": cross_entropy,
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
