"""Wisconsin's breast cancer data from scikit-learn: 569 tumours, 30 measurements each, no download."""

import torch

from fedcso.datasets.examples import Examples


def breast_cancer() -> Examples:
    """Measurements as they are, for only whoever splits can scale them without looking at the test; 1 is malignant.

    scikit-learn has it the other way round, but the class that is rare and looked for is the positive one.
    """
    from sklearn.datasets import load_breast_cancer  # here, for it takes long to load

    data = load_breast_cancer()
    return Examples(torch.tensor(data.data, dtype=torch.float32), torch.tensor(1 - data.target, dtype=torch.int64))
