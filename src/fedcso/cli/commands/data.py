"""Get a dataset, or check that it is there and whole.

examples:
  fedcso data check digits
  fedcso data get omniglot
"""

from fedcso.cli.parser import simple_parser
from fedcso.core.errors import UnknownName
from fedcso.datasets import load_any
from fedcso.datasets.fetch.places import DataMissing

HELP = "get a dataset, or check that it is there and whole"


def check(name: str) -> str:
    """Load a data set and return in words what is in it."""
    return load_any(name).summary()


def get(name: str) -> str:
    """Do the same, after a download if the data are missing and can be had."""
    try:
        return check(name)
    except DataMissing as missing:
        if missing.download is None:
            raise
        missing.download()
    return check(name)


ACTIONS = {"get": get, "check": check}


def main(arguments: list[str]) -> int:
    """Load it and say what is in it."""
    parser = simple_parser("data", str(__doc__))
    parser.add_argument("action", help="get or check")
    parser.add_argument("name", help="the dataset (fedcso list datasets)")
    options = parser.parse_args(arguments)
    if options.action not in ACTIONS:
        raise UnknownName("action", options.action, ACTIONS)
    print(f"{options.name}: {ACTIONS[options.action](options.name)}")
    return 0
