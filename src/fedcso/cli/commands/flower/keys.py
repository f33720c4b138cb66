"""Create a certificate authority, a certificate for the coordinator and, for a trial, a key for each site.

For real sites use --coordinator-only. Each site creates a key (ssh-keygen -t ecdsa -b 384 -f KEY -N '') and sends you
only KEY.pub, which you put into FOLDER/keys/sites/NAME.pub before `fedcso flower up FOLDER --sites 0`.

examples:
  fedcso flower keys trial
  fedcso flower keys hospitals --coordinator-only --host federation.example.org
"""

from pathlib import Path

from fedcso.federation.deploy.deployment import Deployment
from fedcso.federation.options import Federation
from fedcso.runs.parser import simple_parser


def main(arguments: list[str]) -> int:
    """Create the certificates and keys that are missing."""
    parser = simple_parser("flower keys", str(__doc__))
    parser.add_argument("folder", help="the folder of the federation")
    parser.add_argument(
        "--host", default="", help="names or addresses at which sites reach the coordinator, separated by commas"
    )
    parser.add_argument("--coordinator_only", action="store_true", help="create no keys for sites")
    options = parser.parse_args(arguments)
    deployment = Deployment.open(Path(options.folder))
    names = Federation.from_flat(deployment.config()).names
    sites = [] if options.coordinator_only else names
    deployment.make_keys(sites, [host.strip() for host in options.host.split(",") if host.strip()])
    print(f"for every site    {deployment.keys / 'ca.crt'}")
    print(f"keep secret       {deployment.keys / 'ca.key'}, {deployment.keys / 'server.key'}")
    for site in sites:
        print(f"for site {site:9}{deployment.site_key(site)} (and .pub, which is registered here)")
    return 0
