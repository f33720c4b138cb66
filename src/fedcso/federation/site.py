"""A site's configuration, and the data and work for a request; data come only from the site itself."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

from fedcso.core import atomic
from fedcso.core.errors import FedcsoError, UnknownName
from fedcso.core.judge import ByClient, Judge
from fedcso.core.problem import Problem
from fedcso.core.task import Task
from fedcso.engines.work import Work
from fedcso.federation.options import run_config
from fedcso.federation.request import Order
from fedcso.federation.sovereignty.policy import Policy, Refused, Request, columns_to_use, refusal
from fedcso.runs.config import RunConfig

COLUMNS = ("label", "positive", "drop", "columns")
"""Settings that assign roles to columns."""

OWN = ("data", *COLUMNS)
"""Settings that each site makes for its own data."""


class SiteData(NamedTuple):
    """The data and configuration with which a site answers a request."""

    config: RunConfig
    number: int
    problem: Problem
    judge: Judge
    data: Any
    test: Any
    """The site's test data, or None."""
    validation: Any
    """The site's validation data, or None."""


@dataclass(frozen=True)
class Site:
    """A site, as configured when its SuperNode was started."""

    name: str
    folder: Path
    """The folder for state that must survive restarts."""
    own: dict[str, str]
    """Options for the site's own table; without a table, the site uses its share of built-in data."""
    device: str = "cpu"
    key: str = ""
    """The file of the site's private key, or empty if it has none."""
    policy: Policy = Policy()  # noqa: RUF009 - frozen
    """What the site allows; by default nothing."""
    notes: dict[str, Any] = field(default_factory=dict)
    """What the site's record says of an answer, and the answer does not."""

    @classmethod
    def of(cls, node_config: Mapping[str, Any]) -> "Site":
        """Read Flower's node configuration."""
        missing = [key for key in ("site", "folder") if key not in node_config]
        if missing:
            raise FedcsoError(f"this SuperNode was started without {missing[0]!r}: start it with `fedcso flower site`")
        own = {key: str(node_config[key]) for key in OWN if key in node_config}
        folder = Path(str(node_config["folder"]))
        device, key = str(node_config.get("device", "cpu")), str(node_config.get("key", ""))
        return cls(str(node_config["site"]), folder, own, device, key)

    def under(self, policy: Policy, kind: str, order: Order) -> "Site":
        """Return the site as it answers a request; raise `Refused` if its policy does not allow the request."""
        request = Request(kind, order.config, self.own, order.algorithm, order.round, order.secure)
        if reason := refusal(policy, request, date.today()):
            raise Refused(reason)
        columns = columns_to_use(policy, request) if "data" in self.own else ""
        return replace(self, policy=policy, own=self.own | ({"columns": columns} if columns else {}))

    def number(self, order: Order) -> int:
        """Return the site's client number."""
        if self.name not in order.sites:
            raise UnknownName("site", self.name, order.sites)
        number = order.sites.index(self.name)
        if order.client not in (-1, number):
            raise FedcsoError(f"a request for site {order.client} was sent to site {number}")
        return number

    def holding(self, order: Order, app: Path) -> SiteData:
        """Load and prepare the site's data for a request."""
        number = self.number(order)
        own: dict[str, str] = dict(self.own)
        if own and order.agreement:
            own["agreement"] = str(self._agreement(order, number))
        config = run_config(order.config | own, app)
        task = config.task()
        if own:
            if len(task.clients) != 1:
                raise FedcsoError(f"a site's table must contain one site, not {len(task.clients)}")
            return _held(config, task, number, place=0)
        if len(task.clients) != len(order.sites):
            raise FedcsoError(f"the problem has {len(task.clients)} clients, but there are {len(order.sites)} sites")
        return _held(config, task, number, place=number)

    def work(self, order: Order, holding: SiteData) -> Work:
        """Return the work for a round."""
        config = holding.config
        algorithm, codec = config.built()[order.algorithm]
        # What depends on the data is checked here, because the coordinator has none.
        algorithm.check(config.plan, holding.problem, [holding.data])
        estimator = config.find_estimator()
        return Work(algorithm, holding.problem, config.plan, order.seed, estimator, codec, self.device)

    def _agreement(self, order: Order, number: int) -> Path:
        """Write the sites' agreement to a file and return its path."""
        content = json.dumps(order.agreement | {"place": number})
        path = self.folder / f"agreement-{hashlib.sha256(content.encode()).hexdigest()[:16]}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        atomic.write(path, content)
        return path


def _held(config: RunConfig, task: Task, number: int, place: int) -> SiteData:
    """Return the data of the site with this number, at index `place` of the task."""

    def own(data: Any) -> Any:
        return data.clients[place] if isinstance(data, ByClient) else data

    return SiteData(config, number, task.problem, task.judge, task.clients[place], own(task.test), own(task.validation))
