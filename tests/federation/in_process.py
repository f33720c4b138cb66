"""Sites without processes: orders and answers are packed and unpacked as on the wire, and answered at once."""

import shutil
from dataclasses import dataclass, field
from types import SimpleNamespace

from fedcso.engines import run
from fedcso.federation import client, rounds
from fedcso.federation.elsewhere import About, Elsewhere
from fedcso.federation.exchange import Arrival
from fedcso.federation.options import Federation
from fedcso.federation.order import Order
from fedcso.federation.rounds import Connection
from fedcso.federation.server import over_sites
from fedcso.federation.wire import pack, size, unpack
from fedcso.runs.config import RunConfig


@dataclass
class Sites:
    """A federation in a folder, of whom some may tamper with their answers: (site, round from 0) to a function."""

    folder: object
    settings: dict
    options: dict = field(default_factory=dict)
    tampered: dict = field(default_factory=dict)
    absent: set = field(default_factory=set)
    rows: list = field(default_factory=list)
    """What the journal holds."""

    @property
    def config(self):
        return RunConfig.from_flat(self.settings)

    @property
    def count(self):
        return len(self.config.task().clients)

    def play(self, monkeypatch, seed=0, **options):
        """A run of the configuration's only method over the sites."""
        monkeypatch.setattr(rounds, "exchange", self.exchange)
        ((name, (algorithm, codec)),) = self.config.built().items()
        task, plan, names = self.config.task(), self.config.plan, [str(n) for n in range(self.count)]
        federation = Federation(sites=",".join(names), min_sites=1, **self.options)
        about = [About(task.problem.size(data)) for data in task.clients]
        roster = SimpleNamespace(
            nodes={n: n for n in range(self.count) if n not in self.absent},
            names=names,
            about=about,
            wait=lambda *a: None,
        )
        journal = SimpleNamespace(record=self.rows.extend)
        order = Order(self.settings, names, run="run", algorithm=name)
        return run(
            algorithm,
            type(task)(Elsewhere(task.problem), about),
            plan,
            seed,
            engine=over_sites(Connection(None, federation, roster, journal), order),
            codec=codec,
            **options,
        )

    def simulated(self, seed=0, **options):
        """The same in one process."""
        ((algorithm, codec),) = self.config.built().values()
        return run(algorithm, self.config.task(), self.config.plan, seed, codec=codec, **options)

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
        return Arrival(reply, "", 1.0, size(content), size(reply))
