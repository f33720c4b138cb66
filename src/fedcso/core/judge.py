"""How models are judged on held-out data. A judge belongs to a task; the problem is mathematics only."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import nn

from fedcso.core.errors import FedcsoError, InvalidValue, UnknownName, require
from fedcso.core.metric import Metric
from fedcso.core.tree import Tree


class Network(NamedTuple):
    """A trained network that can be exported, and a few example inputs."""

    module: nn.Module
    inputs: torch.Tensor


class ByClient(NamedTuple):
    """Held-out data as a whole, and the part of each client."""

    whole: Any
    clients: Sequence[Any]
    names: Sequence[str] = ()
    """The names of these clients, if they are not the clients that train, in the same order."""


Evaluate = Callable[[Tree, Any], dict[str, Any]]
"""(x, held-out data) → metrics by name."""


def measure_nothing(x: Tree, data: Any) -> dict[str, Any]:
    """Return no metrics."""
    return {}


@dataclass(frozen=True)
class Judge:
    """What is measured of a model on held-out data, and the metric by which models are chosen.

    Several problems can share a judge (three ranking losses are judged by the same average precision), and a task can
    use its own metrics without changing its problem:

        Judge(evaluate, metrics=[Metric("f1", higher_is_better=True, share=True)])
    """

    evaluate: Evaluate = measure_nothing
    """Called only if there are held-out data."""
    metrics: Sequence[Metric] = ()
    """Declarations of what `evaluate` returns, the most important first. Undeclared metrics are recorded, but can't be
    used to choose a model."""
    select: str | None = None
    """The metric by which models are chosen; by default the first whose `higher_is_better` is not None."""
    broadcasts: bool = False
    """True if `evaluate` accepts leading axes on x and returns a value for each of their indices."""
    rank: Callable[[Tree, Any], tuple[torch.Tensor, torch.Tensor]] | None = None
    """(x, held-out data) → scores and labels 0 and 1, for precision-recall curves."""
    network: Callable[[Tree, Any], Network] | None = None
    """(x, held-out data) → the trained network, for export."""

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
                f"select = {self.select!r} is not declared: declare it with the direction that is better, as in "
                f"Judge(…, metrics=[fedcso.Metric({self.select!r}, higher_is_better=True)])"
            )
        elif self.select not in names:
            raise UnknownName("metric to select by", self.select, names)
        elif self.metric(self.select).higher_is_better is None:
            raise InvalidValue("select", self.select, "a metric that is declared with higher_is_better=True or False")

    def metric(self, name: str) -> Metric:
        """Return the declaration of a metric, or `Metric(name)` if it is not declared."""
        return next((metric for metric in self.metrics if metric.name == name), Metric(name))

    def measure(self, x: Tree, data: Any) -> dict[str, Any]:
        """Return the metrics of a model on held-out data; an empty dict if there are no such data.

        For `ByClient` data, the metrics on the whole are followed by their means over the clients.
        """
        if data is None:
            return {}
        if isinstance(data, ByClient):
            return self.measure(x, data.whole) | self.mean_over_clients(self.measure_at_clients(x, data))
        found = self.evaluate(x, data)
        if self.select is not None and self.select not in found:
            names = ", ".join(found) or "nothing"
            raise FedcsoError(f"the judge selects by {self.select!r}, but its evaluate returns {names}")
        return found

    def measure_at_clients(self, x: Tree, data: ByClient) -> list[dict[str, Any]]:
        """Return the metrics of one model at each client; half-widths of confidence intervals are left out."""
        with torch.no_grad():
            measured = [self.measure(x, own) for own in data.clients]
        return [
            {name: value for name, value in metrics.items() if self.metric(name).half_width_of is None}
            for metrics in measured
        ]

    def mean_over_clients(self, measured: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """Return the unweighted means over clients; clients for which a metric is undefined (nan) are left out."""
        names = dict.fromkeys(name for metrics in measured for name in metrics)
        return {
            self.metric(name).over_clients().name: torch.stack(
                [torch.as_tensor(metrics[name], dtype=torch.float64) for metrics in measured if name in metrics]
            ).nanmean(0)
            for name in names
            if self.metric(name).curve
        }
