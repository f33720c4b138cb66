"""scikit-learn's handwritten digits: 1797 images of 8×8 pixels, ten classes, no download."""

import torch

from fedcso.datasets.examples import Examples


def digits() -> Examples:
    """Return the digits as flat rows of pixels, scaled to [0, 1]."""
    from sklearn.datasets import load_digits  # imported here because it is slow to load

    data = load_digits()
    return Examples(torch.tensor(data.data / 16, dtype=torch.float32), torch.tensor(data.target, dtype=torch.int64))
