"""The calibration as a part of the network."""

import numpy as np
import pytest
import torch

from fedcso.fitting.calibrated import Calibrated
from fedcso.reports.calibration import Calibration, isotonic, platt
from fedcso.reports.score_counts import FURTHEST, fixed_bins

RNG = np.random.default_rng(0)
SCORES = RNG.normal(scale=3, size=3000)
COUNTS = fixed_bins().count(SCORES, (RNG.random(3000) < 1 / (1 + np.exp(2 - SCORES))).astype(int))


@pytest.mark.parametrize(
    "calibration",
    [
        platt(COUNTS),
        isotonic(COUNTS),
        isotonic(COUNTS).at_prevalence(0.01),
        Calibration("by hand", (-2.0, 0.5, 3.0), (-4.0, -4.0, 2.0), 0.7, 0.1),
        Calibration("constant", (0.0,), (-3.0,), 0.0, 0.1),
    ],
    ids=lambda calibration: calibration.method,
)
def test_probabilities_are_those_of_the_calibration(calibration):
    knots = np.array(calibration.scores)
    scores = np.concatenate([RNG.normal(scale=10, size=500), knots, [0, -FURTHEST, FURTHEST, -1e9, 1e9]])
    given = torch.from_numpy(scores).float()[:, None]
    returned, probabilities = Calibrated(torch.nn.Identity(), calibration)(given)
    assert torch.equal(returned, given[:, 0])
    np.testing.assert_allclose(probabilities, calibration.apply(returned.numpy()), atol=1e-7, rtol=1e-6)
