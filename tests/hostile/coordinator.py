"""Hostile answers from a site, and what the coordinator does with them: it goes on with the other sites.

Every answer is made from (seed, number), so a case that fails can be made again. Each is given to the coordinator as an
answer to all its questions: who a site is, its table, its update, its metrics, its counts of scores.
"""

import contextlib
import json
import logging
import math
import resource
import time
from pathlib import Path
from types import SimpleNamespace

import torch

from fedcso.core.errors import FedcsoError
from fedcso.core.task import Task
from fedcso.core.tree import is_finite
from fedcso.datasets.tables.agree import agree
from fedcso.engines.job import Job
from fedcso.federation import roster, rounds
from fedcso.federation.decisions import as_rows
from fedcso.federation.exchange import Response
from fedcso.federation.options import Federation
from fedcso.federation.remote_problem import RemoteProblem, SiteInfo, Survey, remote_judge
from fedcso.federation.request import Order
from fedcso.federation.roster import Roster
from fedcso.federation.rounds import Connection, SiteBySite
from fedcso.federation.server import tables_of
from fedcso.federation.wire import pack
from fedcso.problems import PROBLEMS
from tests.federation.in_process import Sites
from tests.hostile.answers import Hostile

SECONDS = 1.0
"""The most processor time that an answer may take."""
MEGABYTES = 300
"""The most memory by which all answers together may make the process grow."""
LONGEST = 400
"""The most characters that a site may put into a line of the log or of a table."""

CONFIG = {
    "command": "flower",
    "problem": "nested_quadratic",
    "clients": 3,
    "algorithm": ["FCSG-M"],
    "learning_rate": 0.05,
    "rounds": 2,
    "local_steps": 5,
    "outer_batch": 2,
    "inner_batch": 3,
    "estimator": "plain",
}
COLUMN = {"kind": "numbers", "given": 90, "missing": 0, "mean": 1.0, "deviation": 2.0, "categories": {}, "parts": {}}
TABLE = {"rows": 90, "positives": 20, "columns": {"age": COLUMN, "weight": COLUMN}, "pictures": None}
ABOUT = {"size": 90, "trains": True, "tests": True, "validates": True}
BINS = {name: torch.tensor(value) for name, value in {"bins": [3, 9], "negatives": [5, 0], "positives": [0, 6]}.items()}
MEASURED = {"accuracy": 0.7, "loss": 0.3}


class Coordinator:
    """A coordinator with two honest sites and a hostile one, which answers last."""

    def __init__(self, folder):
        self.sites = Sites(folder, dict(CONFIG))
        self.names = self.sites.names
        self.rows, self.replies = [], {}
        about = [SiteInfo(90, True, True, True) for _ in self.names]
        known = SimpleNamespace(nodes={n: n for n in range(3)}, names=self.names, about=about, refresh=lambda: None)
        journal = SimpleNamespace(record=self.rows.extend)
        self.order = Order(self.sites.config, self.names, run="run", algorithm=self.sites.name)
        self.connection = Connection(None, Federation(sites="3"), known, journal)
        task = Task(RemoteProblem(self.sites.task.problem), about)
        job = Job(self.sites.algorithm, task, self.sites.plan, codec=self.sites.codec)
        self.rounds = SiteBySite(job, self.connection, self.order)
        self.began = self.rounds.state()
        self.x = torch.zeros(3, dtype=torch.float64)
        classified = PROBLEMS["classification"](clients=3)
        self.judge = remote_judge(classified.judge, classified.clients[0])
        rounds.exchange = roster.exchange = self.exchange
        self.honest = {
            "who": [pack({"site": name, "number": n, **ABOUT}) for n, name in enumerate(self.names)],
            "table": [pack({"site": name, "number": n, "table": TABLE}) for n, name in enumerate(self.names)],
            "update": self._updates(),
            "metrics": [pack({"metrics": MEASURED, "validation": MEASURED}) for _ in self.names],
            "counts": [pack({"too_few": []}, {"validation": BINS, "test": BINS}) for _ in self.names],
        }

    def _updates(self):
        self.replies = None
        self.rounds.attempt(0, [0, 1, 2], 1)
        self.rounds.load(self.began)
        return list(self.told.values())

    def exchange(self, grid, kind, contents, seconds):
        if self.replies is None:
            self.told = {node: self.sites.answered(node, content).content for node, content in contents.items()}
            return {node: Response(content, "", 1.0, 10, 10) for node, content in self.told.items()}
        return {node: Response(self.replies[node], "", 1.0, 10, 10) for node in contents}

    def face(self, hostile):
        """Give the answer to every part of the coordinator; raise if one does not go on with the others."""
        for question in self.honest:
            self.replies = dict(enumerate([*self.honest[question][:2], hostile]))
            getattr(self, question)()

    def who(self):
        asked = Roster(SimpleNamespace(get_node_ids=lambda: [0, 1, 2]), self.order, 1.0)
        asked.refresh()
        assert {asked.nodes[0], asked.nodes[1]} == {0, 1}
        return asked

    def table(self):
        found = tables_of(self.who())
        assert {"0", "1"} <= set(found)
        with contextlib.suppress(FedcsoError):  # tables that people must make alike
            json.dumps(agree(found))

    def update(self):
        self.rounds.load(self.began)
        self.rows.clear()
        reports, _ = self.rounds.attempt(0, [0, 1, 2], 2)
        assert reports
        assert [row["outcome"] for row in self.rows][:2] == ["answered"] * 2
        for row in self.rows:
            assert all(len(str(value)) < LONGEST and "\n" not in str(value) for value in row.values()), row
        assert is_finite(self.rounds.server.shared)

    def metrics(self):
        survey = Survey(lambda x: self.connection.measure(self.order, x))
        found = self.judge.measure(self.x, survey.on_test)
        assert all(math.isfinite(found[name]) for name in ("client_accuracy", "client_loss"))
        assert all(len(name) < LONGEST for name in found)

    def counts(self):
        found = self.connection.count(self.order, self.x)
        assert [bool(one.counts) for one in found][:2] == [True, True]
        assert len(found[2].why_not) < LONGEST
        assert as_rows(found, "test").labels.sum() >= 12


class Lines(logging.Handler):
    """Checks what goes into the log."""

    def emit(self, record):
        text = record.getMessage()
        assert len(text) < 2 * LONGEST, text[:200]
        assert not set(text) & set("\n\r\0"), text


def attack(seed, number, folder, progress=lambda done: None):
    """Give the coordinator some answers; return the longest processor time of one, and the growth in megabytes."""
    log = logging.getLogger("fedcso")
    handler, logging.raiseExceptions = Lines(), False
    log.addHandler(handler)
    log.propagate, before = False, (rounds.exchange, roster.exchange)
    try:
        coordinator = Coordinator(Path(folder))
        honest = [content for some in coordinator.honest.values() for content in some]
        began, longest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, 0.0
        for n in range(number):
            answer = Hostile(seed, n, honest).content()
            started = time.process_time()
            try:
                coordinator.face(answer)
            except Exception as error:
                raise AssertionError(f"answer {n} of seed {seed} broke the coordinator") from error
            longest = max(longest, time.process_time() - started)
            progress(n + 1)
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - began) / 1024
    finally:
        log.removeHandler(handler)
        log.propagate, (rounds.exchange, roster.exchange) = True, before
    return longest, grown
