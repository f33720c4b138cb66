"""Metrics as runs declare them, for tests of what is made of results."""

from fedcso.core.evaluation import GRADIENT_NORM
from fedcso.core.metric import DeclaredMetrics
from fedcso.engines.server import TRAIN_LOSS
from fedcso.problems.classification import ACCURACY, LOSS
from fedcso.problems.scores import AUROC, AVERAGE_PRECISION, PREVALENCE, SATURATED

CLASSIFIED = DeclaredMetrics(
    [
        *(ACCURACY.on_test(), ACCURACY.half_width(), LOSS.on_test()),
        *(ACCURACY.over_clients(), LOSS.over_clients(), GRADIENT_NORM, TRAIN_LOSS),
    ],
    deciding="train_loss",
    headline="accuracy",
)
"""Classifiers without validation data."""

RANKED = DeclaredMetrics(
    [
        *(AVERAGE_PRECISION.on_test(), AUROC.on_test(), PREVALENCE, SATURATED),
        *(AVERAGE_PRECISION.over_clients(), AUROC.over_clients(), AVERAGE_PRECISION.on_validation(), TRAIN_LOSS),
    ],
    deciding="validation_average_precision",
    validated=True,
    headline="average_precision",
)
"""Rankings with validation data."""
