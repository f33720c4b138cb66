"""Wisconsin's breast cancer data from scikit-learn: 569 tumours, 30 measurements each, no download."""

import torch

from fedcso.datasets.examples import Examples


def breast_cancer() -> Examples:
    """Return the measurements without scaling, labelled 1 for malignant and 0 for benign tumours.

    Scaling must be fitted on the training part only, so it is left to the code that splits the data. scikit-learn has
    the labels the other way round, but the positive class should be the rare one that is searched for.
    """
    from sklearn.datasets import load_breast_cancer  # imported here because it is slow to load

    data = load_breast_cancer()
    return Examples(torch.tensor(data.data, dtype=torch.float32), torch.tensor(1 - data.target, dtype=torch.int64))
