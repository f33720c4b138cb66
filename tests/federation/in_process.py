"""Sites without processes: orders and answers are packed and unpacked as on the wire, and answered at once."""

import shutil
from dataclasses import dataclass, field
from types import SimpleNamespace

from fedcso.core.task import Task
from fedcso.engines import run
from fedcso.federation import client, rounds
from fedcso.federation.exchange import Response
from fedcso.federation.options import Federation
from fedcso.federation.remote_problem import RemoteProblem, SiteInfo
from fedcso.federation.request import Order
from fedcso.federation.rounds import Connection
from fedcso.federation.server import over_sites
from fedcso.federation.wire import pack, size, unpack
from fedcso.runs.config import RunConfig


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

    def __post_init__(self):
        self.config |= {"command": "flower"}
        config = RunConfig.from_flat(self.config)
        ((self.name, (self.algorithm, self.codec)),) = config.built().items()
        self.task, self.plan = config.task(), config.plan
        self.names = [str(n) for n in range(len(self.task.clients))]

    def play(self, monkeypatch, seed=0, **options):
        """A run of the configuration's only method over the sites."""
        monkeypatch.setattr(rounds, "exchange", self.exchange)
        federation = Federation(sites=",".join(self.names), min_sites=1, **self.options)
        about = [SiteInfo(self.task.problem.size(data)) for data in self.task.clients]
        nodes = {n: n for n in range(len(self.names)) if n not in self.absent}
        roster = SimpleNamespace(nodes=nodes, names=self.names, about=about, wait=lambda *a: None)
        journal = SimpleNamespace(record=self.rows.extend)
        order = Order(self.config, self.names, run="run", algorithm=self.name)
        engine = over_sites(Connection(None, federation, roster, journal), order)
        task = Task(RemoteProblem(self.task.problem), about)
        return run(self.algorithm, task, self.plan, seed, engine=engine, codec=self.codec, **options)

    def simulated(self, seed=0, **options):
        """The same in one process."""
        return run(self.algorithm, self.task, self.plan, seed, codec=self.codec, **options)

    def forget(self, site):
        """A site loses its folder."""
        shutil.rmtree(self.folder / str(site))

    def exchange(self, grid, kind, contents, seconds):
        return {node: self.answered(node, content) for node, content in contents.items()}

    def answered(self, node, content):
        order = Order.read(unpack(content)[0])
        node_config = {"site": str(node), "folder": str(self.folder / str(node))}
        reply = client.respond(client.train, content, node_config, self.folder)
        if how := self.tampered.get((node, order.round)):
            words, tree = unpack(reply)
            reply = pack(*how(words, tree))
        return Response(reply, "", 1.0, size(content), size(reply))
