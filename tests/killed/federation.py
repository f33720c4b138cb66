"""Kill the processes of a federation: the coordinator's, and those of its sites.

All sites must answer in every round (min_sites), so that a round from which a killed site is missing is repeated, and
the run must end as an undisturbed one.
"""

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

import torch

from fedcso.core.tree import leaves
from fedcso.federation.deploy.deployment import SUPERLINK, site_process
from fedcso.runs.folder import RunFolder
from tests.command_line import FINE, call, read_csv, timeless
from tests.federation.real.local import Local, end, final, in_background, wait_until

METHOD, SITES = "Acc-FCSG-M", ["0", "1"]
OPTIONS = ["--problem", "nested_quadratic", "--algorithm", METHOD, "--local-steps", 5, "--sites", len(SITES)]
ROUNDS = ["--rounds", 4, "--min-sites", len(SITES), "--wait-seconds", 900]


class Federation:
    """A federation that stays up, an undisturbed run over it, and what kills do to others."""

    def __init__(self, place):
        self.place, self.local = Path(place), None

    def start(self):
        if self.local is None:
            self.local = Local.make(self.place / "federation", *OPTIONS, *ROUNDS)
            began = time.monotonic()
            try:
                self.whole = self.local.run()
            except AssertionError as why:
                raise RuntimeError("the undisturbed run has failed, so there is nothing to compare with") from why
            self.seconds = time.monotonic() - began

    def stop(self):
        if self.local is not None:
            self.local.deployment.processes.stop()

    def coordinator(self, rng):
        """SIGKILL to the coordinator's app; the run is resumed."""
        return self._disturbed(rng, lambda: os.kill(wait_until(self._app), signal.SIGKILL))

    def superlink(self, rng):
        """SIGKILL to the SuperLink; it is started again with the same database, and the run is resumed."""
        return self._disturbed(rng, lambda: self.local.kill_superlink())

    def supernode(self, rng):
        """SIGKILL to a site's connection; its supervisor starts it again, and the round is repeated."""
        site = rng.choice(SITES)
        return self._disturbed(rng, lambda: self.local.kill_node(site), site)

    def executor(self, rng):
        """SIGKILL to the process that answers a site's messages by forking."""
        site = rng.choice(SITES)
        return self._disturbed(rng, lambda: self.local.kill_executor(site), site)

    def client(self, rng):
        """SIGKILL to a process that answers a message, at any time of its life."""
        site, moment = rng.choice(SITES), rng.uniform(0, 0.3)

        def kill():
            pid = wait_until(lambda: self._client(site))
            time.sleep(moment)
            os.kill(pid, signal.SIGKILL)

        return self._disturbed(rng, kill, site)

    def _disturbed(self, rng, kill, whom=""):
        """Return whether the kill came in time; raise if the run does not end as the undisturbed one."""
        self.start()
        moment, before, began = rng.uniform(0, self.seconds), self._runs(), time.monotonic()
        run = in_background(self.local)
        (folder,) = map(RunFolder.open, wait_until(lambda: self._runs() - before))
        run.join(moment)
        what = f"site {whom}: " * bool(whom) + f"after {moment:.1f} s"
        try:
            in_time = run.is_alive() and folder.status != "done"
            if in_time:
                kill()
        except (AssertionError, ProcessLookupError):  # there is no such process any more
            in_time = False
        code = end(run)
        if not in_time:  # the machine is faster now than it was for the undisturbed run
            self.seconds = min(self.seconds, time.monotonic() - began)
        for _ in range(3):
            if code == FINE:
                break
            if SUPERLINK not in self.local.deployment.processes.alive():
                self.local.deployment.start_superlink(port=self.local.deployment.address()["port"])
            code = call("resume", folder.path).code
        assert folder.status == "done", (folder.path, self.local.said(SUPERLINK))
        self._assert_same(folder)
        return in_time, what

    def _assert_same(self, folder):
        found, expected = leaves(final(folder, METHOD).shared), leaves(final(self.whole, METHOD).shared)
        assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))
        for table in ("metrics.csv", "clients.csv"):
            mine, theirs = (timeless(read_csv(one.path / table)) for one in (folder, self.whole))
            assert mine == theirs, (folder.path / table, self.whole.path / table)

    def _runs(self):
        """The run folders that have their names."""
        return {path for path in Path(self.local.deployment.config()["out"]).iterdir() if path.name[0] != "."}

    def _app(self):
        """The process of the coordinator's app."""
        home = str(self.local.deployment.folder / "federation" / "flwr").encode()
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                is_app = b"flwr-serverapp" in (process / "cmdline").read_bytes()
                if is_app and home in (process / "environ").read_bytes():
                    return int(process.name)
        return None

    def _client(self, site):
        """A process that a site's executor has forked."""
        supervisor = self.local.deployment.processes.alive()[site_process(site)]
        for child in _children(supervisor):
            if b"deploy.executor" in Path(f"/proc/{child}/cmdline").read_bytes():
                return next(iter(_children(child)), None)
        return None


def _children(pid):
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []
