"""What a site is told by its own people, and what it makes of an order: its data never come from anywhere else."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from fedcso.core import atomic
from fedcso.core.errors import FedcsoError, UnknownName
from fedcso.core.judge import ByClient, Judge
from fedcso.core.problem import Problem
from fedcso.core.task import Task
from fedcso.engines.work import Work
from fedcso.estimators import ESTIMATORS
from fedcso.federation.order import Order
from fedcso.runs.config import RunConfig

COLUMNS = ("label", "positive", "drop", "columns")
"""Settings that say what the columns of a table are for."""

OWN = ("data", *COLUMNS)
"""Settings of the data that a site decides by itself."""


class Holding(NamedTuple):
    """What a site works with."""

    config: RunConfig
    number: int
    problem: Problem
    judge: Judge
    data: Any
    test: Any
    """Its own test data, or None."""
    validation: Any
    """Its own validation data, or None."""


@dataclass(frozen=True)
class Site:
    """A site by what its SuperNode was started with."""

    name: str
    folder: Path
    """Where it keeps what must survive."""
    own: dict[str, str]
    """Its own table, if it has one; otherwise it takes its share of data that every site can make."""
    device: str = "cpu"

    @classmethod
    def of(cls, node_config: Mapping[str, Any]) -> "Site":
        """From Flower's node configuration."""
        missing = [key for key in ("site", "folder") if key not in node_config]
        if missing:
            raise FedcsoError(f"this SuperNode was started without {missing[0]!r}; start it by: fedcso flower site")
        own = {key: str(node_config[key]) for key in OWN if key in node_config}
        folder = Path(str(node_config["folder"]))
        return cls(str(node_config["site"]), folder, own, str(node_config.get("device", "cpu")))

    def number(self, order: Order) -> int:
        """Which client it is."""
        if self.name not in order.sites:
            raise UnknownName("site", self.name, order.sites)
        number = order.sites.index(self.name)
        if order.client not in (-1, number):
            raise FedcsoError(f"an order for site {order.client} came to site {number}")
        return number

    def holding(self, order: Order, app: Path) -> Holding:
        """Its data, made ready as the order says."""
        number = self.number(order)
        own: dict[str, str] = dict(self.own)
        if own and order.agreement:
            own["agreement"] = str(self._agreement(order, number))
        config = RunConfig.from_flat(order.config | own, app)
        task = config.task()
        if own:
            if len(task.clients) != 1:
                raise FedcsoError(f"a site's own data must be those of ONE site, not of {len(task.clients)}")
            return _held(config, task, number, place=0)
        if len(task.clients) != len(order.sites):
            raise FedcsoError(f"the problem has {len(task.clients)} clients, but there are {len(order.sites)} sites")
        return _held(config, task, number, place=number)

    def work(self, order: Order, holding: Holding) -> Work:
        """The round's work."""
        config = holding.config
        algorithm, codec = config.built()[order.algorithm]
        estimator = ESTIMATORS[config.estimator]
        return Work(algorithm, holding.problem, config.plan, order.seed, estimator, codec, self.device)

    def _agreement(self, order: Order, number: int) -> Path:
        """What the sites agreed on, as a file here."""
        content = json.dumps(order.agreement | {"place": number})
        path = self.folder / f"agreement-{hashlib.sha256(content.encode()).hexdigest()[:16]}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        atomic.write(path, content)
        return path


def _held(config: RunConfig, task: Task, number: int, place: int) -> Holding:
    """Return what the site with this number has: the task's data at this place."""

    def own(data: Any) -> Any:
        return data.clients[place] if isinstance(data, ByClient) else data

    return Holding(config, number, task.problem, task.judge, task.clients[place], own(task.test), own(task.validation))
