"""Sites without processes that sum securely; each message can be changed, lost or looked at."""

from dataclasses import dataclass, field

from fedcso.federation.deploy.keys import make_site_key
from fedcso.federation.exchange import NO_ANSWER, Response
from fedcso.federation.sovereignty.peers import PEERS
from fedcso.federation.wire import pack, size, unpack
from tests.federation.in_process import Sites

SETTINGS = {
    "problem": "nested_quadratic",
    "clients": 4,
    "algorithm": ["FCSG-M"],
    "learning_rate": 0.05,
    "rounds": 3,
    "local_steps": 3,
    "outer_batch": 4,
    "inner_batch": 3,
    "estimator": "plain",
    "secure_aggregation": True,
}


@dataclass
class SecureSites(Sites):
    """Sites with keys that know each other."""

    before: dict = field(default_factory=dict)
    """(site, kind of message) to a function of the words and the tree of a message: it is changed on its way."""
    after: dict = field(default_factory=dict)
    """(site, kind of message) to a function of the words and the tree of its answer: the site lies."""
    replaced: dict = field(default_factory=dict)
    """(site, kind of message) to what is answered instead."""
    lost: set = field(default_factory=set)
    """(site, kind of message): the site does not answer."""
    seen: list = field(default_factory=list)
    """(site, kind of message, what was sent, what was answered)."""

    def __post_init__(self):
        super().__post_init__()
        self.options = {"secure_aggregation": True} | self.options
        for name in self.names:
            make_site_key(self.folder / "keys" / name)
        for name in self.names:
            (self.folder / name / PEERS).mkdir(parents=True)
            for other in self.names:
                (self.folder / name / PEERS / f"{other}.pub").write_bytes(
                    (self.folder / "keys" / f"{other}.pub").read_bytes()
                )

    def node_config(self, node):
        return super().node_config(node) | {"key": str(self.folder / "keys" / str(node))}

    def answered(self, node, content, kind="train"):
        name = kind.rpartition(".")[2]
        if change := self.before.get((node, name)):
            content = pack(*change(*unpack(content)))
        if (node, name) in self.lost:
            return Response(None, NO_ANSWER, 1.0, size(content), 0)
        arrival = super().answered(node, content, kind)
        if change := self.after.get((node, name)):
            arrival = arrival._replace(content=pack(*change(*unpack(arrival.content))))
        arrival = arrival._replace(content=self.replaced.get((node, name), arrival.content))
        self.seen.append((node, name, content, arrival.content))
        return arrival

    def refusals(self):
        """What sites have refused: (site, kind of message), in order."""
        return [(node, name) for node, name, _, answer in self.seen if "refused" in unpack(answer)[0]]
