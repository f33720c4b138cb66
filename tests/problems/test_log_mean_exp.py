"""Exponentials and logarithms that stay finite."""

import pytest
import torch

from fedcso.problems.log_mean_exp import safe_exp, safe_log


@pytest.mark.parametrize(("dtype", "reach"), [(torch.float32, 70.0), (torch.float64, 560.0)])
def test_they_are_exp_and_log_within_range_and_finite_beyond(dtype, reach):
    inside = torch.linspace(-20, reach, 50, dtype=dtype)
    torch.testing.assert_close(safe_exp(inside), inside.exp())
    beyond = torch.tensor([2 * reach, 100 * reach], dtype=dtype, requires_grad=True)
    value = safe_exp(beyond)
    value.sum().backward()
    assert torch.isfinite(value).all()
    assert value[1] > value[0]
    assert (beyond.grad > 0).all()
    assert torch.isfinite(safe_log(torch.zeros(1, dtype=dtype))).all()
