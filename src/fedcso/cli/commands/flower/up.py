"""Start a federation on this machine in the background: certificates, keys, a SuperLink, and the sites.

examples:
  fedcso flower up trial
  fedcso flower up trial --sites 2              only the first two of the sites
  fedcso flower up hospitals --sites 0 --host 0.0.0.0 --port 8000    only the SuperLink, for sites elsewhere
"""

from pathlib import Path

from fedcso.cli.parser import simple_parser
from fedcso.core.errors import FedcsoError, require
from fedcso.federation.deploy.deployment import SUPERLINK, Deployment
from fedcso.federation.options import Federation

HELP = "start a federation on this machine"


def main(arguments: list[str]) -> int:
    """Start what is not running."""
    parser = simple_parser("flower up", str(__doc__))
    parser.add_argument("folder", help="the federation's folder")
    parser.add_argument("--sites", type=int, help="how many of the sites to start here; all by default")
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen at")
    parser.add_argument("--port", type=int, default=0, help="the port to listen at; 0 for any free one")
    parser.add_argument("--insecure", action="store_true", help="no TLS and no keys, on loopback only")
    options = parser.parse_args(arguments)
    deployment = Deployment.open(Path(options.folder))
    names = Federation.from_flat(deployment.config()).names
    count = len(names) if options.sites is None else options.sites
    require("sites", count, lambda n: 0 <= n <= len(names), f"at most the {len(names)} of the settings")
    running = deployment.processes.alive()
    if SUPERLINK in running:
        raise FedcsoError(f"{deployment.folder} is up already; stop it by: fedcso flower down {options.folder}")
    if not options.insecure:
        deployment.make_keys(names[:count], [options.host] if options.host not in ("127.0.0.1", "0.0.0.0") else [])
    print("starting the SuperLink (some seconds) …", flush=True)
    port = deployment.start_superlink(options.host, options.port, not options.insecure)
    print(f"SuperLink   {options.host}:{port}  {'without TLS' if options.insecure else 'TLS, sites by key'}")
    if not options.insecure:
        deployment.register(deployment.known_sites())
    for name in names[:count]:
        deployment.start_site(name)
        print(f"site        {name}, keeps its state in {deployment.folder / 'sites' / name}")
    print(f"logs        {deployment.processes.folder}/*.log")
    print(f"now         fedcso flower run {options.folder}    and at the end: fedcso flower down {options.folder}")
    return 0
