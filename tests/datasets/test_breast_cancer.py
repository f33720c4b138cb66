"""The breast cancer data are as published, with the rare class as the positive one."""

import torch

from fedcso.datasets import load
from tests.command_line import FINE, call


def test_malignant_is_positive_and_measurements_are_not_scaled():
    data = load("breast_cancer")
    assert data.inputs.shape == (569, 30)
    assert data.inputs.dtype == torch.float32
    assert data.labels.dtype == torch.int64
    assert data.labels.bincount().tolist() == [357, 212]
    assert data.inputs[0, 0].item() == torch.tensor(17.99).item()  # the first tumour's radius, and it is malignant
    assert data.labels[0] == 1
    malignant, benign = (data.inputs[data.labels == label, 0].mean().item() for label in (1, 0))
    assert malignant > benign + 5  # malignant ones are larger


def test_the_command_knows_it():
    assert call("data", "check", "breast_cancer") == (FINE, "breast_cancer: 569 examples of 30, 2 classes\n", "")
