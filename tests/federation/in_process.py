"""Sites without processes: orders and answers are packed and unpacked as on the wire, and answered at once."""

import json
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

from fedcso.core.task import Task
from fedcso.engines import run
from fedcso.federation import client, roster, rounds
from fedcso.federation.exchange import NO_ANSWER, Response
from fedcso.federation.options import Federation
from fedcso.federation.remote_problem import RemoteProblem, SiteInfo
from fedcso.federation.request import COUNTS, Order
from fedcso.federation.rounds import Connection
from fedcso.federation.secure.answers import SECURE
from fedcso.federation.secure.revealed import Revealed
from fedcso.federation.server import coordinate, over_sites
from fedcso.federation.sovereignty.policy import FILE as POLICY
from fedcso.federation.sovereignty.writing import policy_text
from fedcso.federation.wire import pack, size, unpack
from fedcso.runs.config import RunConfig
from fedcso.runs.folder import RunFolder


def allow(folder, settings, tables=(), **changes):
    """Write the policy of a site: closed, but sufficient for the settings, with other values of some keys."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = policy_text(settings, [str(table) for table in tables]).splitlines()
    for key, value in changes.items():
        (place,) = (n for n, line in enumerate(lines) if line.startswith(f"{key} = "))
        lines[place] = f"{key} = {json.dumps(value)}"
    (folder / POLICY).write_text("\n".join(lines))


@dataclass
class Sites:
    """A federation in a folder, of whom some may tamper with their answers: (site, round from 0) to a function."""

    folder: object
    config: dict
    options: dict = field(default_factory=dict)
    tampered: dict = field(default_factory=dict)
    absent: set = field(default_factory=set)
    rows: list = field(default_factory=list)
    """What the journal holds."""
    revealed: Revealed = field(default_factory=Revealed)
    """Which secure sums sites were asked to reveal."""
    policies: dict = field(default_factory=dict)
    """Other values of keys in the policies of some sites."""

    def __post_init__(self):
        self.config |= {"command": "flower"}
        config = RunConfig.from_flat(self.config)
        ((self.name, (self.algorithm, self.codec)),) = config.built().items()
        self.task, self.plan = config.task(), config.plan
        self.names = [str(n) for n in range(len(self.task.clients))]

    def play(self, monkeypatch, seed=0, **options):
        """A run of the configuration's only method over the sites."""
        monkeypatch.setattr(rounds, "exchange", self.exchange)
        federation = Federation(**({"sites": ",".join(self.names), "min_sites": 1} | self.options))
        about = [SiteInfo(self.task.problem.size(data)) for data in self.task.clients]
        nodes = {n: n for n in range(len(self.names)) if n not in self.absent}
        known = SimpleNamespace(nodes=nodes, names=self.names, about=about, wait=lambda *a: None)
        journal = SimpleNamespace(record=self.rows.extend)
        order = Order(self.config, self.names, run="run", algorithm=self.name)
        engine = over_sites(Connection(None, federation, known, journal, self.revealed), order)
        task = Task(RemoteProblem(self.task.problem), about)
        return run(self.algorithm, task, self.plan, seed, engine=engine, codec=self.codec, **options)

    def simulated(self, seed=0, **options):
        """The same in one process."""
        return run(self.algorithm, self.task, self.plan, seed, codec=self.codec, **options)

    def node_config(self, node):
        """How a site was started."""
        return {"site": str(node), "folder": str(self.folder / str(node))}

    def forget(self, site):
        """A site loses its folder."""
        shutil.rmtree(self.folder / str(site))

    def exchange(self, grid, kind, contents, seconds):
        return {node: self.answered(node, content, kind) for node, content in contents.items()}

    def answered(self, node, content, kind="train"):
        order = Order.read(unpack(content)[0])
        folder = self.folder / str(node)
        allow(folder, self.config, **self.policies.get(node, {}))
        reply = client.respond(HANDLERS[kind], content, self.node_config(node), self.folder)
        if how := self.tampered.get((node, order.round)):
            words, tree = unpack(reply)
            reply = pack(*how(words, tree))
        return Response(reply, "", 1.0, size(content), size(reply))


HANDLERS = {"query": client.describe, "train": client.train, "evaluate": client.evaluate, COUNTS: client.count}
HANDLERS |= {f"train.{answer.__name__}": answer for answer in SECURE}
"""What a site does with a message, by its kind."""


@dataclass
class TableSites:
    """Sites with tables of their own, by name; some may tamper with their counts, or never send any."""

    folder: Path
    tables: dict
    tampered: dict = field(default_factory=dict)
    silent: set = field(default_factory=set)
    asked: list = field(default_factory=list)
    """Which sites were sent which kinds of messages."""
    smallest_count: dict = field(default_factory=dict)
    """By site, the smallest number of rows that may leave; 1 at the others."""

    def __post_init__(self):
        self.names = list(self.tables)
        for name, frame in self.tables.items():
            frame.to_csv(self.folder / f"{name}.csv", index=False)

    def own(self, name):
        """The site as it is configured."""
        return {"site": name, "folder": str(self.folder / name), "data": str(self.folder / f"{name}.csv")}

    def run(self, monkeypatch, **settings):
        """A run as the coordinator's app carries it out; returns its folder."""
        for module in (rounds, roster):
            monkeypatch.setattr(module, "exchange", self.exchange)
        grid = SimpleNamespace(get_node_ids=lambda: range(len(self.names)))
        options = Federation(sites=",".join(self.names)).flat() | {"seeds": 1, "data": "sites", "agreement": ""}
        given = {"command": "flower", "out": str(self.folder), "data_seed": 0} | options | settings
        folder = RunFolder.create(self.folder / "runs", "flower", given, {"sites": self.names})
        for name in self.names:
            own, smallest = self.own(name), self.smallest_count.get(name, 1)
            allow(Path(own["folder"]), given, [own["data"]], smallest_count=smallest)
        coordinate(grid, folder, self.folder)
        return folder

    def exchange(self, grid, kind, contents, seconds):
        return {node: self.answered(kind, self.names[node], content) for node, content in contents.items()}

    def answered(self, kind, name, content):
        self.asked.append((name, kind))
        if kind == COUNTS and name in self.silent:
            return Response(None, NO_ANSWER, 1.0, size(content), 0)
        reply = client.respond(HANDLERS[kind], content, self.own(name), self.folder)
        if kind == COUNTS and name in self.tampered:
            reply = self.tampered[name](*unpack(reply))
        return Response(reply, "", 1.0, size(content), size(reply))
