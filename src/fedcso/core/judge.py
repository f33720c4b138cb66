"""How models are judged on held-out data; it belongs to a task, not to the mathematics of a problem."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import nn

from fedcso.core.tree import Tree


class Network(NamedTuple):
    """A trained network that can be exported, and a few inputs as it takes them."""

    module: nn.Module
    inputs: torch.Tensor


Evaluate = Callable[[Tree, Any], dict[str, Any]]
"""(x, held-out data) to metrics by name."""


def measure_nothing(x: Tree, data: Any) -> dict[str, Any]:
    """Return no metrics: there is nothing to judge a model by."""
    return {}


@dataclass(frozen=True)
class Judge:
    """What is measured of a model on held-out data, and which of it decides.

    Several problems can share a judge (three ranking losses, one average precision), and a task can bring metrics of
    its own without touching its problem.
    """

    evaluate: Evaluate = measure_nothing
    """Called only where there are held-out data."""
    select: str = "loss"
    """The metric by which the best iterate is chosen."""
    broadcasts: bool = False
    """True if `evaluate` accepts further leading axes on x and returns a value for each index of them."""
    rank: Callable[[Tree, Any], tuple[torch.Tensor, torch.Tensor]] | None = None
    """Scores of held-out examples and their labels 0 and 1, of which precision-recall curves are drawn."""
    network: Callable[[Tree, Any], Network] | None = None
    """The trained network to export."""

    def measure(self, x: Tree, data: Any) -> dict[str, Any]:
        """Return the metrics of a model on held-out data; none where there are no such data."""
        return {} if data is None else self.evaluate(x, data)
