"""Connect a site to a federation and keep it connected.

The state of the site is kept in --folder and survives restarts. To see beforehand what would leave the site, use
`fedcso check-site my.csv`.

A site answers only what its policy allows, the file site.toml in --folder. `--init` writes one for the app of the
coordinator, for you to read and edit; without --app it allows nothing until you do.

examples:
  fedcso flower site --init --app app --data my.csv --folder site-state
  fedcso flower site --superlink federation.example.org:8000 --ca ca.crt --key KEY --name oslo --data my.csv --label y
"""

import os
from pathlib import Path
from typing import Any, NoReturn

from fedcso.core.errors import FedcsoError, InvalidValue, require
from fedcso.datasets.tables.describe import describe_table
from fedcso.datasets.tables.roles import names_of
from fedcso.federation.deploy.app import PACKAGE
from fedcso.federation.deploy.commands import environment, site_command
from fedcso.federation.deploy.keys import LOOPBACK
from fedcso.federation.options import COORDINATOR_ONLY
from fedcso.federation.site import COLUMNS
from fedcso.federation.sovereignty.policy import read_policy
from fedcso.federation.sovereignty.writing import policy_text, write_policy
from fedcso.runs.folder import read_yaml
from fedcso.runs.parser import simple_parser


def main(arguments: list[str]) -> int:
    """Check all options, then replace this process by the supervisor of a SuperNode; or write a policy."""
    parser = simple_parser("flower site", str(__doc__))
    parser.add_argument("--superlink", default="", metavar="HOST:PORT", help="the address of the coordinator")
    parser.add_argument("--name", default="", help="the name of this site in the federation")
    parser.add_argument("--ca", default="", metavar="FILE", help="the ca.crt of the federation")
    parser.add_argument(
        "--key", default="", metavar="FILE", help="the private key of this site, whose public key is registered"
    )
    parser.add_argument("--data", default="", metavar="FILE", help="the table of this site")
    parser.add_argument("--label", default="", help="the column that holds the labels, if it has another name here")
    parser.add_argument("--positive", default="", help="the positive labels, if they have other names here")
    parser.add_argument("--drop", default="", help="columns to leave out, separated by commas")
    parser.add_argument("--columns", default="", help="the only columns to use, separated by commas")
    parser.add_argument("--folder", default="fedcso-site", help="where the state of this site is kept")
    parser.add_argument("--device", default="cpu", help="torch device")
    parser.add_argument(
        "--insecure", action="store_true", help="connect without TLS and key, on the loopback interface only"
    )
    parser.add_argument("--init", action="store_true", help="write a policy for this site into --folder, and end")
    parser.add_argument("--app", default="", metavar="FOLDER", help="for --init: the app of the coordinator")
    options = parser.parse_args(arguments)
    return _write_policy(options) if options.init else _connect(options)


def _connect(options: Any) -> NoReturn:
    command, folder = prepare(options)
    print(f"connecting; the state is kept in {folder}; stop with Ctrl-C", flush=True)
    os.execve(command[0], command, dict(os.environ) | environment(folder / "flwr"))


def prepare(options: Any) -> tuple[list[str], Path]:
    """Return the command to execute and the folder of the site; raise if it could not work or would not be safe."""
    host, colon, port = options.superlink.rpartition(":")
    _require_given("superlink", options.superlink, "the address of the coordinator, HOST:PORT")
    require("superlink", options.superlink, lambda _: host and colon and port.isdecimal(), "HOST:PORT")
    _require_given("name", options.name, "the name of this site in the federation")
    if options.insecure and host not in LOOPBACK:
        raise InvalidValue("insecure", True, f"left out: {host} is not the loopback interface, so others could listen")
    if not options.insecure:
        _require_file("ca", options.ca, "the ca.crt of the federation")
        _require_file("key", options.key, "the private key of this site")
    folder = Path(options.folder).resolve()
    node = {"site": options.name, "folder": str(folder), "device": options.device}
    if options.key:
        node["key"] = str(Path(options.key).resolve())
    if options.data:
        own = {name: getattr(options, name) for name in COLUMNS if getattr(options, name)}
        if options.label:
            describe_table(options.data, **own)  # raises now if the table can't be read
        node |= {"data": str(Path(options.data).resolve())} | own
    read_policy(folder)  # raises now if the site would refuse everything
    safe = None if options.insecure else (Path(options.ca).resolve(), Path(options.key).resolve())
    authority, key = safe or (None, None)
    return site_command(folder, options.superlink, node, authority, key), folder


def _write_policy(options: Any) -> int:
    """Write a policy that allows what the coordinator's app is configured to do, with this site's table."""
    settings: dict[str, Any] = {}
    if options.app:
        settings = read_yaml(Path(options.app) / PACKAGE / "config.yaml", "settings")
        settings = {name: value for name, value in settings.items() if name not in COORDINATOR_ONLY}
    tables = [str(Path(options.data).resolve())] if options.data else []
    path = write_policy(Path(options.folder), policy_text(settings, tables, names_of(options.columns)))
    print(f"written  {path}")
    if not settings:
        print("note     it allows nothing yet; --app FOLDER would allow what that app is configured to do")
    print("next     read it, and change what your site should not allow; it is read before every message")
    return 0


def _require_given(option: str, value: str, what: str) -> None:
    if not value:
        raise FedcsoError(f"--{option} is missing: give {what}")


def _require_file(option: str, value: str, what: str) -> None:
    _require_given(option, value, what)
    if not Path(value).is_file():
        raise FedcsoError(f"{option}: there is no file {value}; give {what}")
