"""A federation's folder, and the commands by which its SuperLink and SuperNodes are started.

FOLDER/app/          the Flower app: what sites get to run
FOLDER/keys/         certificates and keys (never part of the app)
FOLDER/federation/   the SuperLink's database and log, process numbers, connections
FOLDER/sites/NAME/   for a trial on one machine: what each site keeps
FOLDER/runs/         run folders
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedcso.core import atomic
from fedcso.core.errors import FedcsoError, InvalidValue
from fedcso.federation.deploy import supervise
from fedcso.federation.deploy.app import PACKAGE
from fedcso.federation.deploy.keys import LOOPBACK, make_authority, make_server_certificate, make_site_key
from fedcso.federation.deploy.processes import Processes, free_port
from fedcso.federation.deploy.watchdog import listens
from fedcso.runs.folder import read_yaml

QUIET = {"FLWR_TELEMETRY_ENABLED": "0", "FLWR_DISABLE_UPDATE_CHECK": "1"}
"""Flower sends no usage data."""

CONNECTION = "fedcso"
SUPERLINK = "superlink"
START_SECONDS = 120.0


@dataclass(frozen=True)
class Deployment:
    """A federation's folder."""

    folder: Path

    @classmethod
    def open(cls, folder: Path) -> "Deployment":
        """A folder that is there; refuses what is none."""
        if not (folder / "app" / "pyproject.toml").is_file():
            raise FedcsoError(f"{folder} is not a federation's folder; make one by: fedcso flower init {folder} …")
        return cls(folder.resolve())

    @property
    def app(self) -> Path:
        """The Flower app."""
        return self.folder / "app"

    @property
    def package(self) -> Path:
        """The files of the app that sites run: settings, and a user's own."""
        return self.app / PACKAGE

    @property
    def keys(self) -> Path:
        """Certificates and keys."""
        return self.folder / "keys"

    @property
    def processes(self) -> Processes:
        """What runs here."""
        return Processes(self.folder / "federation")

    def config(self) -> dict[str, Any]:
        """The settings of runs."""
        return read_yaml(self.package / "config.yaml", "settings")

    def make_keys(self, sites: Sequence[str], hosts: Sequence[str] = ()) -> None:
        """What is not there yet: authority, the coordinator's certificate, a key for each site."""
        self.keys.mkdir(parents=True, exist_ok=True)
        if not (self.keys / "ca.crt").is_file():
            make_authority(self.keys)
        if hosts or not (self.keys / "server.pem").is_file():
            make_server_certificate(self.keys, hosts)
        for site in sites:
            if not self.site_key(site).is_file():
                make_site_key(self.site_key(site))

    def site_key(self, site: str) -> Path:
        """A site's private key."""
        return self.keys / "sites" / site

    def known_sites(self) -> list[str]:
        """Those whose public keys are here."""
        return sorted(path.stem for path in (self.keys / "sites").glob("*.pub"))

    # ------------------------------------------------------------------------------- the SuperLink

    def start_superlink(self, host: str = "127.0.0.1", port: int = 0, secure: bool = True) -> int:
        """Start it and wait until it answers; returns its port."""
        if not secure and host not in LOOPBACK:
            raise InvalidValue("insecure", True, f"left out: {host} is not loopback, where others could listen")
        port = port or free_port()
        home = self.folder / "federation" / "flwr"
        home.mkdir(parents=True, exist_ok=True)
        command = [program("flower-superlink"), "--host", host, "--port", str(port)]
        command += ["--disable-runtime-dependency-installation", "--database", str(self.folder / "federation/state.db")]
        command += self._server_tls() if secure else ["--insecure"]
        trust = f'root-certificates = "{self.keys / "ca.crt"}"' if secure else "insecure = true"
        local = f"127.0.0.1:{port}"
        connection = (
            f'[superlink]\ndefault = "{CONNECTION}"\n\n[superlink.{CONNECTION}]\naddress = "{local}"\n{trust}\n'
        )
        atomic.write(home / "config.toml", connection)
        atomic.write(self._address, json.dumps({"host": host, "port": port, "secure": secure}))
        self.processes.start(SUPERLINK, command, self.environment)
        self._wait_until_it_answers()
        return port

    def _server_tls(self) -> list[str]:
        files = {"--ssl-ca-certfile": "ca.crt", "--ssl-certfile": "server.pem", "--ssl-keyfile": "server.key"}
        return [part for flag, file in files.items() for part in (flag, str(self.keys / file))] + [
            "--enable-supernode-auth"
        ]

    def _wait_until_it_answers(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not listens(self.address()["port"]):
            self.processes.require_alive(SUPERLINK)
            if time.monotonic() > deadline:
                raise FedcsoError(f"the SuperLink does not answer: {self.processes.last_words(SUPERLINK)}")
            time.sleep(0.2)

    @property
    def _address(self) -> Path:
        return self.folder / "federation" / "address.json"

    def address(self) -> dict[str, Any]:
        """Where the SuperLink is: host, port, secure."""
        if not self._address.is_file():
            raise FedcsoError(f"no SuperLink was started in {self.folder}; start it by: fedcso flower up {self.folder}")
        return dict(json.loads(self._address.read_text()))

    @property
    def environment(self) -> dict[str, str]:
        """For Flower's programs on the coordinator's side."""
        return environment(self.folder / "federation" / "flwr")

    def flwr(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Flower's own command line, connected to this SuperLink."""
        return subprocess.run(
            [program("flwr"), *arguments],
            env=os.environ | self.environment,
            capture_output=True,
            text=True,
            check=False,
        )

    def register(self, sites: Sequence[str]) -> None:
        """Let the sites' keys in."""
        with ThreadPoolExecutor() as pool:
            list(pool.map(self._register, sites))

    def _register(self, site: str) -> None:
        public = self.site_key(site).with_name(f"{site}.pub")
        outcome = self.flwr("supernode", "register", str(public), CONNECTION)
        said = outcome.stdout + outcome.stderr
        if outcome.returncode and "already" not in said.lower():
            raise FedcsoError(f"the key of site {site} could not be registered: {' '.join(said.split())}")

    # ------------------------------------------------------------------------------------ sites

    def start_site(self, site: str, own: dict[str, str] | None = None) -> None:
        """Start a site's SuperNode on this machine, kept running by a supervisor."""
        address = self.address()
        place = self.folder / "sites" / site
        place.mkdir(parents=True, exist_ok=True)
        command = supernode_command(
            f"127.0.0.1:{address['port']}",
            {"site": site, "folder": str(place)} | (own or {}),
            self.keys / "ca.crt" if address["secure"] else None,
            self.site_key(site) if address["secure"] else None,
        )
        self.processes.start(site_process(site), supervised(place, command), environment(place / "flwr"))


def site_process(site: str) -> str:
    """What a site's process is called."""
    return f"site-{site}"


def program(name: str) -> str:
    """A program of Flower, from the same environment as this one."""
    return str(Path(sys.executable).parent / name)


def environment(home: Path) -> dict[str, str]:
    """Quiet, with Flower's own files in a folder of their own, and its helpers to be found."""
    beside = str(Path(sys.executable).parent)
    return QUIET | {"FLWR_HOME": str(home), "PATH": beside + os.pathsep + os.environ.get("PATH", os.defpath)}


def supernode_command(
    superlink: str, node_config: dict[str, str], authority: Path | None, key: Path | None
) -> list[str]:
    """The command that connects a site; without an authority the connection is not encrypted."""
    command = [program("flower-supernode"), "--superlink", superlink, "--port", str(free_port())]
    command += ["--root-certificates", str(authority)] if authority else ["--insecure"]
    command += ["--auth-supernode-private-key", str(key)] if key else []
    return [*command, "--node-config", " ".join(f"{name}={json.dumps(value)}" for name, value in node_config.items())]


def supervised(place: Path, command: Sequence[str]) -> list[str]:
    """The command, started again whenever it ends."""
    return [sys.executable, str(supervise.__file__), str(place / "supernode.pid"), *command]
