"""How models are judged on held-out data; it belongs to a task, not to the mathematics of a problem."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import nn

from fedcso.core.errors import FedcsoError, InvalidValue, UnknownName, require
from fedcso.core.metric import Metric
from fedcso.core.tree import Tree


class Network(NamedTuple):
    """A trained network that can be exported, and a few inputs as it takes them."""

    module: nn.Module
    inputs: torch.Tensor


class ByClient(NamedTuple):
    """Held-out data as a whole, and what each client measures at home."""

    whole: Any
    clients: Sequence[Any]
    names: Sequence[str] = ()
    """Who they are, if not the clients that train, in their order."""


Evaluate = Callable[[Tree, Any], dict[str, Any]]
"""(x, held-out data) to metrics by name."""


def measure_nothing(x: Tree, data: Any) -> dict[str, Any]:
    """Return no metrics: there is nothing to judge a model by."""
    return {}


@dataclass(frozen=True)
class Judge:
    """What is measured of a model on held-out data, and which of it decides.

    Several problems can share a judge (three ranking losses, one average precision), and a task can bring its own
    metrics without touching its problem:

        Judge(evaluate, metrics=[Metric("f1", higher_is_better=True, share=True)])
    """

    evaluate: Evaluate = measure_nothing
    """Called only where there are held-out data."""
    metrics: Sequence[Metric] = ()
    """What `evaluate` returns, the most telling first. What it returns besides is recorded and decides nothing."""
    select: str | None = None
    """The metric by which models are chosen; by default the first one that says which way is better."""
    broadcasts: bool = False
    """True if `evaluate` accepts further leading axes on x and returns a value for each index of them."""
    rank: Callable[[Tree, Any], tuple[torch.Tensor, torch.Tensor]] | None = None
    """Scores of held-out examples and their labels 0 and 1, of which precision-recall curves are drawn."""
    network: Callable[[Tree, Any], Network] | None = None
    """The trained network to export."""

    def __post_init__(self) -> None:
        require(
            "metrics",
            self.metrics,
            lambda metrics: not isinstance(metrics, str) and all(isinstance(one, Metric) for one in metrics),
            "a list of fedcso.Metric",
        )
        names = [metric.name for metric in self.metrics]
        require("metrics", names, lambda names: len(set(names)) == len(names), "metrics with different names")
        if self.select is None:
            directed = [metric.name for metric in self.metrics if metric.higher_is_better is not None]
            object.__setattr__(self, "select", directed[0] if directed else None)
        elif not names:
            raise FedcsoError(
                f"select = {self.select!r} is not declared: say which way is better, as in "
                f"Judge(…, metrics=[fedcso.Metric({self.select!r}, higher_is_better=True)])"
            )
        elif self.select not in names:
            raise UnknownName("metric to select by", self.select, names)
        elif self.metric(self.select).higher_is_better is None:
            raise InvalidValue("select", self.select, "a metric that is declared with higher_is_better True or False")

    def metric(self, name: str) -> Metric:
        """Return the declaration of a metric, also if there is none."""
        return next((metric for metric in self.metrics if metric.name == name), Metric(name))

    def measure(self, x: Tree, data: Any) -> dict[str, Any]:
        """Return the metrics of a model on held-out data; none where there are no such data.

        Where the data are `ByClient`, the means over the clients follow the metrics on the whole.
        """
        if data is None:
            return {}
        if isinstance(data, ByClient):
            return self.measure(x, data.whole) | self.mean_over_clients(self.at_clients(x, data))
        found = self.evaluate(x, data)
        if self.select is not None and self.select not in found:
            there = ", ".join(found) or "nothing"
            raise FedcsoError(f"the judge selects by {self.select!r}, but its evaluate returns {there}")
        return found

    def at_clients(self, x: Tree, data: ByClient) -> list[dict[str, Any]]:
        """Return the metrics of one model at each client, without the half-widths of their intervals."""
        with torch.no_grad():
            measured = [self.measure(x, own) for own in data.clients]
        return [
            {name: value for name, value in metrics.items() if self.metric(name).half_width_of is None}
            for metrics in measured
        ]

    def mean_over_clients(self, measured: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """Return the means: every client counts alike, except where a metric is undefined (nan) for it."""
        names = dict.fromkeys(name for metrics in measured for name in metrics)
        return {
            self.metric(name).over_clients().name: torch.stack(
                [torch.as_tensor(metrics[name], dtype=torch.float64) for metrics in measured if name in metrics]
            ).nanmean(0)
            for name in names
            if self.metric(name).curve
        }
