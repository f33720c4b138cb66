"""Remove a site from a federation, in the middle of a run too: its key is refused from now on.

A run goes on with the other sites, as long as there are min_sites of them; the removed one is left out of the round in
progress. To let it in again it needs a new key: fedcso flower keys FOLDER --rotate --site NAME.

examples:
  fedcso flower remove hospitals oslo
"""

from pathlib import Path

from fedcso.federation.deploy.deployment import Deployment
from fedcso.federation.deploy.members import remove
from fedcso.federation.options import Federation
from fedcso.runs.parser import simple_parser


def main(arguments: list[str]) -> int:
    """Remove the site, and say how many are left."""
    parser = simple_parser("flower remove", str(__doc__))
    parser.add_argument("folder", help="the folder of the federation")
    parser.add_argument("site", help="the name of the site")
    options = parser.parse_args(arguments)
    deployment = Deployment.open(Path(options.folder))
    remove(deployment, options.site)
    left, least = deployment.known_sites(), Federation.from_flat(deployment.config()).min_sites
    print(f"removed {options.site}; its key is refused. Left: {', '.join(left) or 'none'}")
    if len(left) < least:
        print(f"note    rounds need {least} sites (min_sites in config.yaml), so runs wait until there are more")
    return 0
