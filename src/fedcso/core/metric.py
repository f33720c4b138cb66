"""What a metric is called and how it is read. It is declared once, where it is computed."""

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from fedcso.core.errors import FedcsoError, require


@dataclass(frozen=True)
class Symptom:
    """What a large value of a metric says about a run that has collapsed."""

    above: float
    """The value from which on it says so."""
    says: str
    """What is wrong and what to do, to follow the value as a percentage."""


@dataclass(frozen=True)
class Metric:
    """A number that is measured of a model.

    Whoever shows, compares or chooses models by a metric asks its declaration; nothing else depends on names. The same
    metric on other data is derived from it (`on_test`, `on_validation`, `over_clients`, `half_width`), so a derived
    name is never taken apart again. `Metric(name)` is all that is known of a metric that nobody has declared: it is
    recorded and shown, but it can't decide anything.
    """

    name: str
    """The key in what `evaluate` returns, and the column in metrics.csv."""
    title: str = ""
    """What people call it; the name with spaces by default."""
    higher_is_better: bool | None = None
    """False for a loss or an error; None if it does not tell a better model from a worse one."""
    share: bool = False
    """True if it lies between 0 and 1, whatever an interval over few seeds says."""
    log: bool = False
    """True if it is drawn on a logarithmic axis."""
    chance: str | float | None = None
    """What a random model gets: a number, or the name of the metric that holds it."""
    curve: bool = True
    """True if it is worth a curve, and a mean over clients."""
    tabulated: bool = True
    """True if it is a result; False for what is recorded only to explain one."""
    symptom: Symptom | None = None
    """What a large value explains, if it can."""
    half_width_of: str | None = None
    """The metric whose confidence interval has this half-width, if it is one."""

    def __post_init__(self) -> None:
        require("name", self.name, lambda name: isinstance(name, str) and name, "the name of a metric")
        if not self.title:
            object.__setattr__(self, "title", self.name.replace("_", " "))

    def is_better(self, value: float, than: float) -> bool:
        """True if a value is finite and better than another; every finite value is better than an undefined one."""
        if self.higher_is_better is None:
            raise FedcsoError(f"{self.name} can't decide: its declaration does not say whether higher is better")
        if not math.isfinite(value) or not math.isfinite(than):
            return math.isfinite(value)
        return value > than if self.higher_is_better else value < than

    def half_width(self) -> "Metric":
        """Return the half-width of this metric's own confidence interval (over test tasks, say)."""
        return Metric(f"{self.name}_interval", f"± of {self.title}", curve=False, half_width_of=self.name)

    def on_test(self) -> "Metric":
        """Return this metric as measured on test data: the same column, and a title that says so."""
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
        """Return the mean of this metric over what clients measure at home."""
        chance = None if isinstance(self.chance, str) else self.chance
        return replace(self, name=f"client_{self.name}", title=f"{self.title}, mean over clients", chance=chance)

    def hidden(self) -> "Metric":
        """Return this metric as one that is recorded and not shown."""
        return replace(self, curve=False, tabulated=False)


@dataclass(frozen=True)
class DeclaredMetrics:
    """The metrics that a run records, in the order in which they are shown, and which of them decides.

    A run writes it to metrics.json, so that reports can be made from the run's folder alone.
    """

    metrics: Sequence[Metric] = ()
    deciding: str = ""
    """The metric by which the best iterate is chosen (`fedcso.engines.choice`); empty if that is not known."""
    validated: bool = False
    """True if the deciding metric is measured on validation data."""
    headline: str = ""
    """The metric that is shown where there is room for only one; empty if that is not known."""
    _by_name: dict[str, Metric] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_name", {metric.name: metric for metric in self.metrics})

    def __getitem__(self, name: str) -> Metric:
        """Return a metric by name, also if nobody has declared it."""
        return self._by_name.get(name) or Metric(name)

    def ordered(self, names: Iterable[str]) -> list[Metric]:
        """Return the metrics of these names: the declared ones in their order, then the others."""
        there = dict.fromkeys(names)
        declared = [name for name in self._by_name if name in there]
        return [self[name] for name in dict.fromkeys([*declared, *there])]

    def to_json(self) -> str:
        """Return the content of metrics.json."""
        about = {"deciding": self.deciding, "validated": self.validated, "headline": self.headline}
        return json.dumps(about | {"metrics": [asdict(metric) for metric in self.metrics]}, indent=1)

    @classmethod
    def from_json(cls, text: str) -> "DeclaredMetrics":
        """Read the content of metrics.json; raise `FedcsoError` if it is something else."""
        try:
            content = json.loads(text)
            metrics = [_read(one) for one in content["metrics"]]
            return cls(metrics, content["deciding"], content["validated"], content["headline"])
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise FedcsoError(f"the declarations of metrics can't be read ({type(error).__name__}: {error})") from error


def _read(content: dict[str, Any]) -> Metric:
    """Return the metric that `asdict` has taken apart; what another version knows besides is left out."""
    known = {one.name: content[one.name] for one in fields(Metric) if one.name in content}
    symptom = known.get("symptom")
    return Metric(**known | {"symptom": Symptom(**symptom) if symptom else None})
