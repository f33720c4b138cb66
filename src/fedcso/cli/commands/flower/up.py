"""Start a federation on this machine in the background: a SuperLink and its sites, with certificates and keys.

examples:
  fedcso flower up trial
  fedcso flower up trial --sites 2              only the first two sites
  fedcso flower up hospitals --sites 0 --host 0.0.0.0 --port 8000    only the SuperLink, for remote sites
"""

from pathlib import Path

from fedcso.core.errors import FedcsoError, require
from fedcso.federation.deploy.deployment import EVERYWHERE, SUPERLINK, Deployment
from fedcso.federation.deploy.members import update_register
from fedcso.federation.options import Federation
from fedcso.runs.parser import simple_parser


def main(arguments: list[str]) -> int:
    """Start the SuperLink and the sites; raise `FedcsoError` if they are running already."""
    parser = simple_parser("flower up", str(__doc__))
    parser.add_argument("folder", help="the folder of the federation")
    parser.add_argument("--sites", type=int, help="the number of sites to start here; by default all")
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen on")
    parser.add_argument("--port", type=int, default=0, help="the port to listen on; 0 for any free port")
    parser.add_argument(
        "--insecure", action="store_true", help="connect without TLS and keys, on the loopback interface only"
    )
    options = parser.parse_args(arguments)
    deployment = Deployment.open(Path(options.folder))
    federation = Federation.from_flat(deployment.config())
    names = [name for name in federation.names if not deployment.removed_key(name).is_file()]
    count = len(names) if options.sites is None else options.sites
    require(
        "sites", count, lambda n: 0 <= n <= len(names), f"a number from 0 to {len(names)}, the sites in the settings"
    )
    running = deployment.processes.alive()
    if SUPERLINK in running:
        raise FedcsoError(f"{deployment.folder} is already running; to stop it: fedcso flower down {options.folder}")
    if not options.insecure:
        deployment.make_keys(names[:count], [options.host] if options.host not in ("127.0.0.1", *EVERYWHERE) else [])
    elif federation.secure_aggregation:
        deployment.make_site_keys(names[:count])
    print("starting the SuperLink (takes a few seconds) …", flush=True)
    port = deployment.start_superlink(options.host, options.port, not options.insecure)
    security = "without TLS" if options.insecure else "with TLS, sites authenticate by key"
    print(f"SuperLink   {options.host}:{port}  {security}; commands are accepted on this machine only")
    if not options.insecure:
        update_register(deployment)
    for name in names[:count]:
        deployment.start_site(name)
        print(f"site        {name}, state in {deployment.folder / 'sites' / name}")
    print(f"logs        {deployment.processes.folder}/*.log")
    print(f"next        fedcso flower run {options.folder}    and at the end: fedcso flower down {options.folder}")
    return 0
