"""Download a dataset, or check that it is complete.

examples:
  fedcso data check digits
  fedcso data get omniglot
"""

from fedcso.core.errors import UnknownName
from fedcso.datasets import load_any
from fedcso.datasets.fetch.places import DataMissing
from fedcso.runs.parser import simple_parser


def check(name: str) -> str:
    """Load a dataset and return a summary of it."""
    return load_any(name).summary()


def get(name: str) -> str:
    """Load a dataset, downloading it first if it is missing, and return a summary of it."""
    try:
        return check(name)
    except DataMissing as missing:
        if missing.download is None:
            raise
        missing.download()
    return check(name)


ACTIONS = {"get": get, "check": check}


def main(arguments: list[str]) -> int:
    """Carry out the action and print the summary."""
    parser = simple_parser("data", str(__doc__))
    parser.add_argument("action", help="get (download it if it is missing) or check")
    parser.add_argument("name", help="the dataset (see: fedcso list datasets)")
    options = parser.parse_args(arguments)
    if options.action not in ACTIONS:
        raise UnknownName("action", options.action, ACTIONS)
    print(f"{options.name}: {ACTIONS[options.action](options.name)}")
    return 0
