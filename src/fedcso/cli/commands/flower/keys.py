"""Create certificates and keys: an authority, a certificate for the coordinator and, for a trial, a key for each site.

For real sites use --coordinator-only. Each site creates a key (ssh-keygen -t ecdsa -b 384 -f KEY -N '') and sends you
only KEY.pub, which you put into FOLDER/keys/sites/NAME.pub before `fedcso flower up FOLDER --sites 0`.

With --rotate, existing ones are replaced while the federation runs. The coordinator's certificate: connections that
are open go on, new ones get the new certificate, sites need nothing. The key of a site (--site): the old key is refused
at once; the site misses the round in progress and is back, with its state, when it connects with the new key. The
authority (--authority, after ca.key or server.key was lost; the federation must be stopped): every site needs the new
ca.crt.

examples:
  fedcso flower keys trial
  fedcso flower keys hospitals --coordinator-only --host federation.example.org
  fedcso flower keys hospitals --rotate                                     the coordinator's certificate
  fedcso flower keys hospitals --rotate --site oslo --public-key new.pub    a site's key, made at the site
"""

from pathlib import Path
from typing import Any

from fedcso.core.errors import FedcsoError, UnknownName
from fedcso.federation.deploy.deployment import Deployment
from fedcso.federation.deploy.members import replace_key
from fedcso.federation.options import Federation
from fedcso.runs.parser import simple_parser


def main(arguments: list[str]) -> int:
    """Create the certificates and keys that are missing, or replace existing ones."""
    parser = simple_parser("flower keys", str(__doc__))
    parser.add_argument("folder", help="the folder of the federation")
    parser.add_argument(
        "--host", default="", help="names or addresses at which sites reach the coordinator, separated by commas"
    )
    parser.add_argument("--coordinator_only", action="store_true", help="create no keys for sites")
    parser.add_argument("--rotate", action="store_true", help="replace the coordinator's certificate")
    parser.add_argument("--site", default="", metavar="NAME", help="with --rotate: replace the key of this site")
    parser.add_argument("--public_key", default="", metavar="FILE", help="with --site: its new public key")
    parser.add_argument("--authority", action="store_true", help="with --rotate: replace the authority, too")
    options = parser.parse_args(arguments)
    deployment = Deployment.open(Path(options.folder))
    names = Federation.from_flat(deployment.config()).names
    if options.rotate:
        return _rotate(deployment, names, options)
    for name in ("site", "public_key", "authority"):
        if getattr(options, name):
            raise FedcsoError(f"--{name.replace('_', '-')} replaces something; add --rotate if you want that")
    sites = [] if options.coordinator_only else names
    deployment.make_keys(sites, _hosts(options))
    print(f"for every site    {deployment.keys / 'ca.crt'}")
    print(f"keep secret       {deployment.keys / 'ca.key'}, {deployment.keys / 'server.key'}")
    for site in sites:
        print(f"for site {site:9}{deployment.site_key(site)} (and .pub, which is registered here)")
    return 0


def _rotate(deployment: Deployment, names: list[str], options: Any) -> int:
    if options.public_key and not options.site:
        raise FedcsoError("--public-key is the key of a site; name the site with --site")
    if options.site:
        if options.site not in names:
            raise UnknownName("site", options.site, names)
        replace_key(deployment, options.site, Path(options.public_key) if options.public_key else None)
        print(f"replaced the key of site {options.site}; the old one is refused")
    elif options.authority:
        deployment.rotate_authority(_hosts(options))
        print(
            f"replaced the authority; send {deployment.keys / 'ca.crt'} to every site: the old one is worth nothing now"
        )
    else:
        deployment.rotate_certificate(_hosts(options))
        print("replaced the coordinator's certificate; connections that are open go on, new ones get the new one")
    return 0


def _hosts(options: Any) -> list[str]:
    return [host.strip() for host in options.host.split(",") if host.strip()]
