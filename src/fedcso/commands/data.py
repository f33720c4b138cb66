"""Get a dataset, or check that it is there and whole.

examples:
  fedcso data check digits
  fedcso data get digits
"""

from fedcso.commands.common import simple_parser
from fedcso.datasets import load
from fedcso.errors import UnknownName

HELP = "get a dataset, or check that it is there and whole"


def main(arguments: list[str]) -> int:
    """Load it and say what is in it; loading gets what is missing."""
    parser = simple_parser("data", str(__doc__))
    parser.add_argument("action", help="get or check")
    parser.add_argument("name", help="the dataset (fedcso list datasets)")
    options = parser.parse_args(arguments)
    if options.action not in ("get", "check"):
        raise UnknownName("action", options.action, ["get", "check"])
    examples = load(options.name)
    shape = "×".join(map(str, examples.inputs.shape[1:]))
    classes = len(set(examples.labels.tolist()))
    print(f"{options.name}: {len(examples.labels)} examples of {shape}, {classes} classes")
    return 0
