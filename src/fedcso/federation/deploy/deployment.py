"""The folder of a federation, and the commands that start its SuperLink and SuperNodes.

FOLDER/app/          the Flower app, which the sites run
FOLDER/keys/         certificates and keys (never part of the app)
FOLDER/federation/   the SuperLink's database, logs, process ids and connection settings
FOLDER/sites/NAME/   the policy (site.toml) and the state of each site, in a trial on one machine
FOLDER/runs/         run folders
"""

import json
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedcso.core import atomic
from fedcso.core.errors import FedcsoError
from fedcso.federation.deploy.app import PACKAGE
from fedcso.federation.deploy.commands import as_address, environment, program, site_command, superlink_program
from fedcso.federation.deploy.keys import LOOPBACK, hosts_of, make_authority, make_server_certificate, make_site_key
from fedcso.federation.deploy.processes import Processes, free_port
from fedcso.federation.deploy.watchdog import listens
from fedcso.federation.options import COORDINATOR_ONLY
from fedcso.federation.sovereignty.approval import approve, files_of_app
from fedcso.federation.sovereignty.peers import PEERS
from fedcso.federation.sovereignty.policy import read_policy
from fedcso.federation.sovereignty.writing import policy_text, write_policy
from fedcso.runs.folder import read_yaml

CONNECTION = "fedcso"
SUPERLINK = "superlink"
CONTROL_HOST = "127.0.0.1"
"""Where commands are accepted: on this machine only."""
EVERYWHERE = ("0.0.0.0", "::")
"""Addresses to listen on that nobody can connect to."""
START_SECONDS = 120.0
"""How long the SuperLink may take to start."""


@dataclass(frozen=True)
class Deployment:
    """A federation's folder."""

    folder: Path

    @classmethod
    def open(cls, folder: Path) -> "Deployment":
        """Open an existing folder; raise `FedcsoError` if it is not a federation's folder."""
        if not (folder / "app" / "pyproject.toml").is_file():
            raise FedcsoError(f"{folder} is not a federation's folder; create one with: fedcso flower init {folder} …")
        return cls(folder.resolve())

    @property
    def app(self) -> Path:
        """The Flower app."""
        return self.folder / "app"

    @property
    def package(self) -> Path:
        """The Python package of the app: its settings, and copies of the user's own files."""
        return self.app / PACKAGE

    @property
    def keys(self) -> Path:
        """Certificates and keys."""
        return self.folder / "keys"

    @property
    def processes(self) -> Processes:
        """The processes that were started for this folder."""
        return Processes(self.folder / "federation")

    def config(self) -> dict[str, Any]:
        """Return the settings of runs."""
        return read_yaml(self.package / "config.yaml", "settings")

    def make_keys(self, sites: Sequence[str], hosts: Sequence[str] = ()) -> None:
        """Create what is missing: the authority, the coordinator's certificate, and a key for each site.

        The coordinator's certificate is created again if `hosts` are given.
        """
        self.keys.mkdir(parents=True, exist_ok=True)
        if not (self.keys / "ca.crt").is_file():
            make_authority(self.keys)
        if hosts or not (self.keys / "server.pem").is_file():
            make_server_certificate(self.keys, hosts)
        self.make_site_keys(sites)

    def make_site_keys(self, sites: Sequence[str]) -> None:
        """Create the keys that are missing of some sites."""
        for site in sites:
            if not self.site_key(site).is_file():
                make_site_key(self.site_key(site))

    def rotate_certificate(self, hosts: Sequence[str] = ()) -> None:
        """Give the coordinator a new certificate and key, for its old names if no others are given."""
        make_server_certificate(self.keys, hosts or hosts_of(self.keys / "server.pem"))
        running = self.processes.alive()
        if SUPERLINK in running:
            os.kill(running[SUPERLINK], signal.SIGHUP)  # new connections get it; those that are open stay

    def rotate_authority(self, hosts: Sequence[str] = ()) -> None:
        """Give the federation a new authority; who trusts only the new one refuses all earlier certificates."""
        if SUPERLINK in self.processes.alive():
            raise FedcsoError(f"the federation is running; stop it first: fedcso flower down {self.folder}")
        hosts = hosts or hosts_of(self.keys / "server.pem")
        make_authority(self.keys)
        make_server_certificate(self.keys, hosts)

    def site_key(self, site: str) -> Path:
        """Return the path of a site's private key."""
        return self.keys / "sites" / site

    def public_key(self, site: str) -> Path:
        """Return the path of a site's public key."""
        return self.keys / "sites" / f"{site}.pub"

    def removed_key(self, site: str) -> Path:
        """Return the path of the public key that a removed site had."""
        return self.keys / "removed" / f"{site}.pub"

    def known_sites(self) -> list[str]:
        """Return the names of the sites whose public keys are in the folder."""
        return sorted(path.stem for path in (self.keys / "sites").glob("*.pub"))

    # ------------------------------------------------------------------------------- the SuperLink

    def start_superlink(
        self,
        host: str = "127.0.0.1",
        port: int = 0,
        secure: bool = True,
        program: Sequence[str] | None = None,
    ) -> int:
        """Start the SuperLink, wait until it accepts connections, and return its port for sites.

        Commands and the coordinator's app connect to another port, which is on loopback only.
        """
        if not secure and host not in LOOPBACK:
            raise FedcsoError(
                f"--insecure is refused for {host}: others could read the traffic; use it on loopback only"
            )
        port = port or free_port()
        home = self.folder / "federation" / "flwr"
        home.mkdir(parents=True, exist_ok=True)
        control = free_port()
        command = [*(program or superlink_program(host, port)), "--host", CONTROL_HOST, "--port", str(control)]
        command += ["--disable-runtime-dependency-installation", "--database", str(self.folder / "federation/state.db")]
        command += self._server_tls() if secure else ["--insecure"]
        trust = f'root-certificates = "{self.keys / "ca.crt"}"' if secure else "insecure = true"
        local = as_address(CONTROL_HOST, control)
        connection = (
            f'[superlink]\ndefault = "{CONNECTION}"\n\n[superlink.{CONNECTION}]\naddress = "{local}"\n{trust}\n'
        )
        atomic.write(home / "config.toml", connection)
        atomic.write(self._address, json.dumps({"host": host, "port": port, "control": control, "secure": secure}))
        self.processes.start(SUPERLINK, command, self.environment)
        self._wait_for_superlink()
        return port

    def _server_tls(self) -> list[str]:
        files = {"--ssl-ca-certfile": "ca.crt", "--ssl-certfile": "server.pem", "--ssl-keyfile": "server.key"}
        return [part for flag, file in files.items() for part in (flag, str(self.keys / file))] + [
            "--enable-supernode-auth"
        ]

    def _wait_for_superlink(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not listens(self.address()["control"]):
            self.processes.require_alive(SUPERLINK)
            if time.monotonic() > deadline:
                raise FedcsoError(
                    f"the SuperLink does not answer; its log ends with: {self.processes.log_tail(SUPERLINK)}"
                )
            time.sleep(0.2)

    @property
    def _address(self) -> Path:
        return self.folder / "federation" / "address.json"

    def address(self) -> dict[str, Any]:
        """Return host and port for sites, the control port on loopback, and whether TLS is on (secure)."""
        if not self._address.is_file():
            raise FedcsoError(
                f"no SuperLink was started in {self.folder}; start it with: fedcso flower up {self.folder}"
            )
        return dict(json.loads(self._address.read_text()))

    def local_address(self) -> str:
        """Return the address at which a site on this machine reaches the SuperLink."""
        address = self.address()
        host = "127.0.0.1" if address["host"] in EVERYWHERE else address["host"]
        return as_address(host, address["port"])

    @property
    def environment(self) -> dict[str, str]:
        """The environment variables of Flower's programs on the coordinator's side."""
        return environment(self.folder / "federation" / "flwr")

    def flwr(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run Flower's command line, connected to this SuperLink."""
        return subprocess.run(
            [program("flwr"), *arguments],
            env=os.environ | self.environment,
            capture_output=True,
            text=True,
            check=False,
        )

    # ------------------------------------------------------------------------------------ sites

    def site_folder(self, site: str) -> Path:
        """Return the folder of a site in a trial on this machine."""
        return self.folder / "sites" / site

    def allow(self, site: str, tables: Sequence[str] = ()) -> None:
        """Write the policy of a site in a trial."""
        write_policy(self.site_folder(site), self.policy(tables))

    def policy(self, tables: Sequence[str] = ()) -> str:
        """Return a site's policy: closed, but sufficient for the settings of this federation."""
        settings = {name: value for name, value in self.config().items() if name not in COORDINATOR_ONLY}
        return policy_text(settings, tables)

    def introduce(self, site: str) -> None:
        """Give a site of a trial the public keys of all sites, as their people would hand them to each other."""
        peers = self.site_folder(site) / PEERS
        peers.mkdir(parents=True, exist_ok=True)
        for name in self.known_sites():
            atomic.write(peers / f"{name}.pub", self.site_key(name).with_name(f"{name}.pub").read_bytes())

    def start_site(self, site: str, own: dict[str, str] | None = None) -> None:
        """Start a site's SuperNode on this machine, under a supervisor that restarts it."""
        address = self.address()
        place = self.site_folder(site)
        read_policy(place)  # raises now if the site would refuse everything
        self.introduce(site)
        key = {"key": str(self.site_key(site))} if self.site_key(site).is_file() else {}
        command = site_command(
            place,
            self.local_address(),
            {"site": site, "folder": str(place)} | key | (own or {}),
            self.keys / "ca.crt" if address["secure"] else None,
            self.site_key(site) if address["secure"] else None,
        )
        approve(place, files_of_app(self.app))  # in a trial, the same person wrote the app and starts the site
        self.processes.start(site_process(site), command, environment(place / "flwr"))


def site_process(site: str) -> str:
    """Return the name of a site's process."""
    return f"site-{site}"
