"""Make a certificate authority, the coordinator's certificate and a key for each site, for a trial.

examples:
  fedcso flower keys trial
  fedcso flower keys hospitals --coordinator-only --host federation.example.org    the name by which sites reach you
In earnest each site makes its own key (ssh-keygen -t ecdsa -b 384 -f KEY -N '') and hands over KEY.pub alone, which
goes to FOLDER/keys/sites/NAME.pub before `fedcso flower up FOLDER --sites 0`.
"""

from pathlib import Path

from fedcso.cli.parser import simple_parser
from fedcso.federation.deploy.deployment import Deployment
from fedcso.federation.options import Federation

HELP = "certificates and keys for a trial"


def main(arguments: list[str]) -> int:
    """What is not there yet."""
    parser = simple_parser("flower keys", str(__doc__))
    parser.add_argument("folder", help="the federation's folder")
    parser.add_argument("--host", default="", help="names or addresses of the coordinator, separated by commas")
    parser.add_argument("--coordinator_only", action="store_true", help="no keys for sites, which make their own")
    options = parser.parse_args(arguments)
    deployment = Deployment.open(Path(options.folder))
    names = Federation.from_flat(deployment.config()).names
    sites = [] if options.coordinator_only else names
    deployment.make_keys(sites, [host.strip() for host in options.host.split(",") if host.strip()])
    print(f"everyone gets     {deployment.keys / 'ca.crt'}")
    print(f"stays with you    {deployment.keys / 'ca.key'}, {deployment.keys / 'server.key'}")
    for site in sites:
        print(f"for site {site:9}{deployment.site_key(site)} (and .pub, which is registered)")
    return 0
