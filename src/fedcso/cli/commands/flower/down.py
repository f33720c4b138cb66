"""Stop what `fedcso flower up` started in a folder, and nothing else.

examples:
  fedcso flower down trial
"""

from pathlib import Path

from fedcso.cli.parser import simple_parser
from fedcso.federation.deploy.deployment import Deployment

HELP = "stop what `up` started"


def main(arguments: list[str]) -> int:
    """By their numbers, if they are still the same processes."""
    parser = simple_parser("flower down", str(__doc__))
    parser.add_argument("folder", help="the federation's folder")
    stopped = Deployment.open(Path(parser.parse_args(arguments).folder)).processes.stop()
    print(f"stopped: {', '.join(stopped)}" if stopped else "nothing was running")
    return 0
