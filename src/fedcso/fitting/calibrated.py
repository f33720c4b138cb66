"""A network together with its calibration, as one network that can be exported."""

import numpy as np
import torch
from torch import nn

from fedcso.reports.calibration import Calibration
from fedcso.reports.score_counts import FURTHEST


class Calibrated(nn.Module):
    """inputs → the network's scores s, and probabilities p of a positive.

    The calibration is made of straight lines in log-odds (see `Calibration`). With [l_j, h_j] the part of the scores in
    which line j holds, m_j its slope and a_j the end of the part that is nearer to the first knot (s_0, b),

        log p/(1 − p) = b + Σ_j m_j ( min(max(s, l_j), h_j) − a_j )

    which needs only operations that ONNX has. It is computed in float64, because lines may be steep.
    """

    lows: torch.Tensor
    highs: torch.Tensor
    anchors: torch.Tensor
    slopes: torch.Tensor

    def __init__(self, network: nn.Module, calibration: Calibration):
        super().__init__()
        self.network = network
        self.first = calibration.log_odds[0]
        knots = np.array(calibration.scores)
        ends = np.array([-FURTHEST, *knots, FURTHEST])
        between = np.diff(calibration.log_odds) / np.diff(knots)
        lines = {
            "lows": ends[:-1],
            "highs": ends[1:],
            "anchors": np.array([knots[0], *knots]),
            "slopes": np.array([calibration.slope, *between, calibration.slope]),
        }
        for name, values in lines.items():
            self.register_buffer(name, torch.from_numpy(values.astype(np.float64)))

    def forward(self, inputs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return scores and probabilities, one of each for every example."""
        scores = self.network(inputs).flatten()
        within = torch.minimum(torch.maximum(scores.double()[:, None], self.lows), self.highs)
        log_odds = self.first + ((within - self.anchors) * self.slopes).sum(-1)
        return scores, torch.sigmoid(log_odds).float()
