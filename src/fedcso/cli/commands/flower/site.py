"""Connect a site to a federation and keep it connected: what a site runs.

examples:
  fedcso flower site --superlink federation.example.org:8000 --ca ca.crt --key KEY --name oslo --data my.csv --label y
The site's local state is kept in --folder and survives restarts. Before, see what would leave: fedcso check-site my.csv
"""

import os
from pathlib import Path
from typing import Any

from fedcso.cli.parser import simple_parser
from fedcso.core.errors import FedcsoError, InvalidValue, require
from fedcso.datasets.tables.describe import describe_table
from fedcso.federation.deploy.deployment import environment, supernode_command, supervised
from fedcso.federation.deploy.keys import LOOPBACK
from fedcso.federation.site import COLUMNS

HELP = "connect a site"


def main(arguments: list[str]) -> int:
    """Check everything, then become the supervisor of a SuperNode."""
    parser = simple_parser("flower site", str(__doc__))
    parser.add_argument("--superlink", default="", help="the coordinator's HOST:PORT")
    parser.add_argument("--name", default="", help="the site's name in the federation's list")
    parser.add_argument("--ca", default="", help="the federation's ca.crt")
    parser.add_argument("--key", default="", help="this site's private key, whose public half is registered")
    parser.add_argument("--data", default="", help="this site's own table")
    parser.add_argument("--label", default="", help="its label column, if it is called otherwise here")
    parser.add_argument("--positive", default="", help="its positive labels, if they are called otherwise here")
    parser.add_argument("--drop", default="", help="columns of it to leave out, separated by commas")
    parser.add_argument("--columns", default="", help="the only columns of it to learn from, separated by commas")
    parser.add_argument("--folder", default="fedcso-site", help="where this site keeps what must survive")
    parser.add_argument("--device", default="cpu", help="torch device")
    parser.add_argument("--insecure", action="store_true", help="no TLS and no key, on loopback only")
    command, folder = prepared(parser.parse_args(arguments))
    folder.mkdir(parents=True, exist_ok=True)
    print(f"connecting; state in {folder}; Ctrl-C ends it", flush=True)
    os.execve(command[0], command, dict(os.environ) | environment(folder / "flwr"))


def prepared(options: Any) -> tuple[list[str], Path]:
    """The command and the site's folder; refuses what can't work or would not be safe."""
    host, colon, port = options.superlink.rpartition(":")
    require("superlink", options.superlink, lambda _: host and colon and port.isdecimal(), "HOST:PORT")
    require("name", options.name, bool, "the site's name in the federation's list")
    if options.insecure and host not in LOOPBACK:
        raise InvalidValue("insecure", True, f"left out: {host} is not loopback, where others could listen")
    if not options.insecure:
        _file("ca", options.ca, "the federation's ca.crt")
        _file("key", options.key, "this site's private key")
    folder = Path(options.folder).resolve()
    node = {"site": options.name, "folder": str(folder), "device": options.device}
    if options.data:
        own = {name: getattr(options, name) for name in COLUMNS if getattr(options, name)}
        if options.label:
            describe_table(options.data, **own)  # what can't be read shows now
        node |= {"data": str(Path(options.data).resolve())} | own
    safe = None if options.insecure else (Path(options.ca).resolve(), Path(options.key).resolve())
    authority, key = safe or (None, None)
    return supervised(folder, supernode_command(options.superlink, node, authority, key)), folder


def _file(option: str, value: str, what: str) -> None:
    if not value:
        raise InvalidValue(option, value, f"{what}, for connections are encrypted and sites known by their keys")
    if not Path(value).is_file():
        raise FedcsoError(f"{option}: there is no file {value}")
