"""Objectives of the form f(E[g]), one per module, and the table of the functions that make tasks of them."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fedcso.core.registry import Registry

PROBLEMS: "Registry[Callable[..., Task]]" = Registry(
    "problem",
    __name__,
    {
        "invariant_logistic": "invariant_logistic:invariant_logistic",
        "nested_quadratic": "nested_quadratic:nested_quadratic",
        "classification": "classification:classification",
        "maml": "maml:maml",
        "pretraining": "pretraining:pretraining",
        "personalised": "personalised:personalised",
        "robust": "robust:robust",
        "auprc": "auprc:auprc",
        "auroc": "auroc:auroc",
        "cross_entropy": "cross_entropy:cross_entropy",
        "instrumental": "instrumental:instrumental",
        "policy_evaluation": "policy_evaluation:policy_evaluation",
        "sinkhorn_dro": "sinkhorn_dro:sinkhorn_dro",
        "kl_dro": "kl_dro:kl_dro",
        "invariant_images": "invariant_images:invariant_images",
        "partial_auc": "partial_auc:partial_auc",
        "information": "information:information",
        "ndcg": "ndcg:ndcg",
        "contrastive": "contrastive:contrastive",
    },
)
"""Functions that make a task, by name; their arguments are the options of the command line.

To add one, write its module and a row here.
"""

if TYPE_CHECKING:  # type checkers can't read the table; to them, a class that is missing here is of type Any
    from fedcso.core.task import Task
    from fedcso.problems.auprc import AUPRC as AUPRC
    from fedcso.problems.auroc import AUROC as AUROC
    from fedcso.problems.classification import Classification as Classification
    from fedcso.problems.contrastive import Contrastive as Contrastive
    from fedcso.problems.cross_entropy import CrossEntropy as CrossEntropy
    from fedcso.problems.information import Information as Information
    from fedcso.problems.instrumental import Instrumental as Instrumental
    from fedcso.problems.invariant_images import InvariantImages as InvariantImages
    from fedcso.problems.invariant_logistic import InvariantLogistic as InvariantLogistic
    from fedcso.problems.kl_dro import KLDRO as KLDRO
    from fedcso.problems.maml import MAML as MAML
    from fedcso.problems.ndcg import RankedLists as RankedLists
    from fedcso.problems.nested_quadratic import NestedQuadratic as NestedQuadratic
    from fedcso.problems.partial_auc import OneWayCVaR as OneWayCVaR
    from fedcso.problems.partial_auc import OneWayKL as OneWayKL
    from fedcso.problems.partial_auc import TwoWayKL as TwoWayKL
    from fedcso.problems.personalised import Personalised as Personalised
    from fedcso.problems.policy_evaluation import PolicyEvaluation as PolicyEvaluation
    from fedcso.problems.robust import Robust as Robust
    from fedcso.problems.sinkhorn_dro import SinkhornClassification as SinkhornClassification
    from fedcso.problems.sinkhorn_dro import SinkhornRegression as SinkhornRegression


def __getattr__(name: str) -> Any:
    return PROBLEMS.package_attribute(name)
