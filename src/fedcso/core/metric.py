"""Declarations of metrics: names, titles, which direction is better. Each is declared once, where it is computed."""

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from fedcso.core.errors import FedcsoError, require


@dataclass(frozen=True)
class Symptom:
    """What a large value of a metric reveals about a run that has collapsed."""

    above: float
    """The threshold above which the value is a symptom."""
    says: str
    """What is wrong and what to do; shown after the value as a percentage."""


@dataclass(frozen=True)
class Metric:
    """The declaration of a number that is measured of a model.

    Code that shows, compares or chooses by a metric reads its declaration, never its name. Declarations of the same
    metric on other data are derived from it (`on_test`, `on_validation`, `over_clients`, `half_width`), so names are
    never parsed. An undeclared metric is treated as `Metric(name)`: it is recorded and shown, but can't be used to
    choose a model.
    """

    name: str
    """The key in the dict that `evaluate` returns, and the column in metrics.csv."""
    title: str = ""
    """The title in reports; by default the name with spaces."""
    higher_is_better: bool | None = None
    """False for a loss or an error; None if the metric does not say which of two models is better."""
    share: bool = False
    """True if it lies between 0 and 1; confidence intervals are cut off there."""
    log: bool = False
    """True to draw it on a logarithmic axis."""
    chance: str | float | None = None
    """The value of a random model: a number, or the name of the metric that holds it."""
    curve: bool = True
    """True to draw a curve of it, and to average it over clients."""
    tabulated: bool = True
    """True to show it in tables of results; False for diagnostics."""
    symptom: Symptom | None = None
    """What a large value reveals, if anything."""
    half_width_of: str | None = None
    """The name of the metric of whose confidence interval this is the half-width, if it is one."""

    def __post_init__(self) -> None:
        require("name", self.name, lambda name: isinstance(name, str) and name, "a name that is not empty")
        if not self.title:
            object.__setattr__(self, "title", self.name.replace("_", " "))

    def is_better(self, value: float, than: float) -> bool:
        """Return whether a value is finite and better than another; every finite value is better than nan."""
        if self.higher_is_better is None:
            raise FedcsoError(f"{self.name} can't choose a model: declare it with higher_is_better=True or False")
        if not math.isfinite(value) or not math.isfinite(than):
            return math.isfinite(value)
        return value > than if self.higher_is_better else value < than

    def half_width(self) -> "Metric":
        """Return the half-width of this metric's confidence interval (over test tasks, for example)."""
        return Metric(f"{self.name}_interval", f"± of {self.title}", curve=False, half_width_of=self.name)

    def on_test(self) -> "Metric":
        """Return this metric as measured on test data: the same name, with "test" in the title."""
        return replace(self, title=f"test {self.title}")

    def on_validation(self) -> "Metric":
        """Return this metric as measured on validation data."""
        return replace(
            self,
            name=f"validation_{self.name}",
            title=f"validation {self.title}",
            chance=f"validation_{self.chance}" if isinstance(self.chance, str) else self.chance,
            half_width_of=f"validation_{self.half_width_of}" if self.half_width_of else None,
        )

    def over_clients(self) -> "Metric":
        """Return the mean of this metric over the clients' held-out data."""
        chance = None if isinstance(self.chance, str) else self.chance
        return replace(self, name=f"client_{self.name}", title=f"{self.title}, mean over clients", chance=chance)

    def hidden(self) -> "Metric":
        """Return this metric as one that is recorded but not shown."""
        return replace(self, curve=False, tabulated=False)


@dataclass(frozen=True)
class DeclaredMetrics:
    """The metrics that a run records, in the order in which reports show them, and the one that models are chosen by.

    A run writes them to metrics.json, so that reports can be made from the run's folder alone.
    """

    metrics: Sequence[Metric] = ()
    deciding: str = ""
    """The metric by which the best iterate is chosen (`fedcso.engines.choice`); empty if unknown."""
    validated: bool = False
    """True if the deciding metric is measured on validation data."""
    headline: str = ""
    """The metric to show where there is room for only one; empty if unknown."""
    _by_name: dict[str, Metric] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_name", {metric.name: metric for metric in self.metrics})

    def __getitem__(self, name: str) -> Metric:
        """Return a metric by name, or `Metric(name)` if it is not declared."""
        return self._by_name.get(name) or Metric(name)

    def ordered(self, names: Iterable[str]) -> list[Metric]:
        """Return the metrics with these names: the declared ones in their order, then the others."""
        there = dict.fromkeys(names)
        declared = [name for name in self._by_name if name in there]
        return [self[name] for name in dict.fromkeys([*declared, *there])]

    def to_json(self) -> str:
        """Return the content of metrics.json."""
        about = {"deciding": self.deciding, "validated": self.validated, "headline": self.headline}
        return json.dumps(about | {"metrics": [asdict(metric) for metric in self.metrics]}, indent=1)

    @classmethod
    def from_json(cls, text: str) -> "DeclaredMetrics":
        """Parse the content of metrics.json; raise `FedcsoError` if it is not valid."""
        try:
            content = json.loads(text)
            metrics = [_parse_metric(one) for one in content["metrics"]]
            return cls(metrics, content["deciding"], content["validated"], content["headline"])
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise FedcsoError(f"metrics.json can't be read ({type(error).__name__}: {error})") from error


def _parse_metric(content: dict[str, Any]) -> Metric:
    """Return the metric that `asdict` has written; fields of other versions are ignored."""
    known = {one.name: content[one.name] for one in fields(Metric) if one.name in content}
    symptom = known.get("symptom")
    return Metric(**known | {"symptom": Symptom(**symptom) if symptom else None})
