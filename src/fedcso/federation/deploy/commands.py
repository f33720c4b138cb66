"""The commands that start the programs of a federation, and their environment variables."""

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from fedcso.federation.deploy import supervise
from fedcso.federation.deploy.processes import free_port

QUIET = {"FLWR_TELEMETRY_ENABLED": "0", "FLWR_DISABLE_UPDATE_CHECK": "1"}
"""Environment variables that keep Flower from sending usage data and looking for updates."""

SUPERLINK_PROGRAM = [sys.executable, "-P", "-m", "fedcso.federation.deploy.superlink"]
EXECUTOR_PROGRAM = [sys.executable, "-P", "-m", "fedcso.federation.deploy.executor"]
"""Programs of our own; with -P, Python imports nothing from the folder in which they are started."""


def program(name: str) -> str:
    """Return the path of one of Flower's programs, from the Python environment of this process."""
    return str(Path(sys.executable).parent / name)


def environment(home: Path) -> dict[str, str]:
    """Return environment variables that keep Flower's files in `home` and its programs on the PATH."""
    programs = str(Path(sys.executable).parent)
    return QUIET | {"FLWR_HOME": str(home), "PATH": programs + os.pathsep + os.environ.get("PATH", os.defpath)}


def superlink_program(host: str, port: int) -> list[str]:
    """Return our SuperLink, which serves sites at this address; the options of flower-superlink follow."""
    return [*SUPERLINK_PROGRAM, as_address(host, port)]


def as_address(host: str, port: int) -> str:
    """Return HOST:PORT, with brackets around an IPv6 address."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def site_command(
    place: Path, superlink: str, node_config: dict[str, str], authority: Path | None, key: Path | None
) -> list[str]:
    """Return the command that connects a site and keeps it connected, with its process id in the folder `place`.

    Without an authority the connection is not encrypted.
    """
    port = free_port()
    supernode = supernode_command(port, superlink, node_config, authority, key)
    return supervisor_command(place, supernode, [*EXECUTOR_PROGRAM, f"127.0.0.1:{port}", str(place)])


def supernode_command(
    port: int, superlink: str, node_config: dict[str, str], authority: Path | None, key: Path | None
) -> list[str]:
    """Return the command of a SuperNode whose messages are answered by an executor, connected at a port of loopback."""
    command = [program("flower-supernode"), "--superlink", superlink, "--host", "127.0.0.1", "--port", str(port)]
    command += ["--isolation", "process"]
    command += ["--root-certificates", str(authority)] if authority else ["--insecure"]
    command += ["--auth-supernode-private-key", str(key)] if key else []
    return [*command, "--node-config", " ".join(f"{name}={json.dumps(value)}" for name, value in node_config.items())]


def supervisor_command(place: Path, *commands: Sequence[str]) -> list[str]:
    """Return a command that runs the given ones and restarts them whenever one ends."""
    first, *others = commands
    rest = [argument for command in others for argument in (supervise.BETWEEN, *command)]
    return [sys.executable, str(supervise.__file__), str(place / "supernode.pid"), *first, *rest]
