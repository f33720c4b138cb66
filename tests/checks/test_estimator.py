"""Checks of estimators."""

import pytest

from fedcso import check
from tests.checks import own


@pytest.mark.parametrize("estimator", [own.right, "extrapolated", "rt_mlmc", "independent_jacobian", "mean_outside"])
def test_a_right_estimator_passes_everything(estimator):
    findings = check(estimator)
    assert findings.wrong == []
    assert len(findings.passed) == 6


MISTAKES = {
    "halved": ("linear f", "the mean gradient is 0.5", "sum to 1"),
    "single": ("losses", "losses returns shape ()", "one loss for each ξ"),
    "detached": ("losses", "the gradient of the losses is 0", ".detach()"),
    "boasting": ("bias order", "more slowly than 1/m^3", "declare a smaller bias_order"),
    "drawing_globally": ("samples", "draw draws from torch's global generator", "pass generator=rng"),
    "uncounted": ("samples", "draw counts no outer samples", "Costs(outer_samples=…"),
}


@pytest.mark.parametrize(("name", "expected"), MISTAKES.items(), ids=MISTAKES)
def test_a_mistake_is_found(name, expected):
    findings = check(getattr(own, name))
    check_name, *words = expected
    wrong = next(one for one in findings.wrong if one.startswith(f"{check_name}: "))
    assert all(part in wrong for part in words), wrong
