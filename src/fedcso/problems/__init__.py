"""Objectives of the form f(E[g]), one a file; and the table of all of them."""

from fedcso.problem import Problem
from fedcso.problems.classification import Classification
from fedcso.problems.invariant_logistic import InvariantLogistic
from fedcso.problems.nested_quadratic import NestedQuadratic

PROBLEMS: dict[str, type[Problem]] = {
    "invariant_logistic": InvariantLogistic,
    "nested_quadratic": NestedQuadratic,
    "classification": Classification,
}
"""Every problem by name. A new one is a file and a row here."""

__all__ = ["PROBLEMS", "Classification", "InvariantLogistic", "NestedQuadratic"]
