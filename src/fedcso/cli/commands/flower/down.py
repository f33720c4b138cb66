"""Stop the processes that `fedcso flower up` started for a folder.

examples:
  fedcso flower down trial
"""

from pathlib import Path

from fedcso.federation.deploy.deployment import Deployment
from fedcso.runs.parser import simple_parser


def main(arguments: list[str]) -> int:
    """Stop the recorded processes that are still running."""
    parser = simple_parser("flower down", str(__doc__))
    parser.add_argument("folder", help="the folder of the federation")
    stopped = Deployment.open(Path(parser.parse_args(arguments).folder)).processes.stop()
    print(f"stopped: {', '.join(stopped)}" if stopped else "nothing was running")
    return 0
