"""A federation on loopback for tests: what is done with it, and what a run over it must equal."""

import json
import os
import shutil
import signal
import time
from dataclasses import dataclass, replace
from pathlib import Path

import torch
import yaml

from fedcso.core.errors import NonFinite
from fedcso.core.tree import leaves
from fedcso.engines import run
from fedcso.engines.job import Job
from fedcso.engines.loop import run_rounds
from fedcso.engines.reference import ClientByClient
from fedcso.federation.deploy.deployment import SUPERLINK, Deployment, site_process
from fedcso.runs import checkpoint
from fedcso.runs.config import RunConfig
from fedcso.runs.folder import RunFolder
from fedcso.runs.study import as_file_name
from tests import processes
from tests.command_line import FINE, call, read_csv

MISBEHAVING = Path(__file__).with_name("misbehaving_app.py")


@dataclass
class Local:
    """Its folder, and how it is handled."""

    deployment: Deployment

    @classmethod
    def make(cls, folder, *options, up=True, secure=True, sites=None):
        """As a user would: init, up. Sites can be told to misbehave (see `misbehaving_app`)."""
        made = call("flower", "init", folder, *options)
        assert made.code == FINE, made.err
        shutil.copy(MISBEHAVING, folder / "app" / "federated" / "client_app.py")
        local = cls(Deployment.open(folder))
        if up:
            local.up(*([] if secure else ["--insecure"]), *([] if sites is None else ["--sites", sites]))
        return local

    def up(self, *options):
        outcome = call("flower", "up", self.deployment.folder, *options)
        assert outcome.code == FINE, outcome.err + self.said(SUPERLINK)

    def set(self, **settings):
        """Change the settings, as the coordinator may."""
        path = self.deployment.app / "federated" / "config.yaml"
        path.write_text(yaml.safe_dump(self.deployment.config() | settings))

    def said(self, process):
        return self.deployment.processes.log_tail(process)

    def misbehave(self, site, *deeds):
        """Deeds are (round from 0, what): the site does it when asked for that round for the first time."""
        place = self.deployment.folder / "sites" / site
        place.mkdir(parents=True, exist_ok=True)
        (place / "misbehave.json").write_text(json.dumps(deeds))

    def has_misbehaved(self, site):
        """True once nothing is left to do."""
        return json.loads((self.deployment.folder / "sites" / site / "misbehave.json").read_text()) == []

    def let_go(self, site):
        """Lets a site answer that holds its answer back."""
        (self.deployment.folder / "sites" / site / "go").touch()

    def connections(self, site):
        """How often a site has connected so far."""
        return (self.deployment.processes.folder / f"{site_process(site)}.log").read_text().count("SuperNode ID")

    def run(self, code=FINE):
        """A whole run; returns its folder."""
        outcome = call("flower", "run", self.deployment.folder)
        assert outcome.code == code, outcome.out + outcome.err + self.said(SUPERLINK)
        return self.newest()

    def resume(self, folder, code=FINE):
        outcome = call("resume", folder.path)
        assert outcome.code == code, outcome.out + outcome.err + self.said(SUPERLINK)

    def begun(self):
        """The folder of a run, once there is one."""
        runs = Path(self.deployment.config()["out"])
        return self.newest() if runs.is_dir() and any(not p.name.startswith(".") for p in runs.iterdir()) else None

    def newest(self):
        return RunFolder.open(max(Path(self.deployment.config()["out"]).iterdir(), key=os.path.getmtime))

    def kill_node(self, site):
        """SIGKILL to a site's SuperNode; its supervisor lives and starts it again."""
        os.kill(int((self.deployment.folder / "sites" / site / "supernode.pid").read_text()), signal.SIGKILL)

    def kill_executor(self, site):
        """SIGKILL to the process that forks a site's client processes."""
        supervisor = self.deployment.processes.alive()[site_process(site)]
        children = Path(f"/proc/{supervisor}/task/{supervisor}/children").read_text().split()
        (executor,) = [pid for pid in children if b"deploy.executor" in Path(f"/proc/{pid}/cmdline").read_bytes()]
        os.kill(int(executor), signal.SIGKILL)

    def stop_site(self, site):
        """For good, as by its own people."""
        self.deployment.processes.stop([site_process(site)])

    def kill_superlink(self):
        os.killpg(self.deployment.processes.alive()[SUPERLINK], signal.SIGKILL)


def in_background(local):
    """A run, in a process of its own."""
    return processes.start(local.deployment.folder, "flower", "run", local.deployment.folder)


def end(process):
    return processes.end(process)


def checkpointed(folder):
    """After how many rounds the newest checkpoint was written."""
    (place,) = (folder.path / "checkpoints").glob("*/*")
    return checkpoint.newest(place).done


def wait_until(condition, seconds=500):
    """What a condition gives as soon as it gives something."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.1)
    return found


def rounds_in(folder):
    """How many rounds are in the sites' table."""
    path = folder.path / "sites.csv"
    return max((int(row["round"]) for row in read_csv(path)), default=0) if path.is_file() else 0


def outcomes(folder, round, algorithm=None):
    """By site, how a round (from 1) ended."""
    rows = read_csv(folder.path / "sites.csv")
    return {r["site"]: r["outcome"] for r in rows if int(r["round"]) == round and algorithm in (None, r["algorithm"])}


def final(folder, algorithm, seed=0):
    """The server's last state."""
    place = folder.path / "checkpoints" / as_file_name(algorithm) / f"setting0-seed{seed}"
    (trace,) = checkpoint.newest(place).traces
    return trace


def simulated(folder, algorithm, seed=0):
    """The same in one process."""
    config = RunConfig.of(folder)
    method = config.built()[algorithm]
    return run(method.algorithm, config.task(), config.plan, seed, codec=method.codec)


def without(folder, algorithm, absent, seed=0):
    """The same in one process, where (client, round from 0) that are absent are left out of the round."""

    class WithGaps(ClientByClient):
        def local_round(self, number, opened):
            if (number, opened.round.number) in absent:
                return NonFinite("reply", number, opened.round.number, 0, seed)
            return super().local_round(number, opened)

    config = RunConfig.of(folder)
    method, plan = config.built()[algorithm], replace(config.plan, on_nonfinite="drop")
    (trace,) = run_rounds(WithGaps(Job(method.algorithm, config.task(), plan, seed, codec=method.codec)))
    return trace


def assert_same(found, expected):
    """x and all else that is shared, to 1e-12 in float64 and 1e-6 in float32."""
    mine, theirs = leaves(found.shared), leaves(expected.shared)
    assert len(mine) == len(theirs)
    for a, b in zip(mine, theirs, strict=True):
        tolerance = 1e-12 if a.dtype == torch.float64 else 1e-6
        assert torch.allclose(a, b, rtol=tolerance, atol=tolerance), (a - b).abs().max()
