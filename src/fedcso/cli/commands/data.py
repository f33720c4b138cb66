"""Get a dataset, or check that it is there and whole.

examples:
  fedcso data check digits
  fedcso data get omniglot
"""

from fedcso.cli.parser import simple_parser
from fedcso.core.errors import UnknownName
from fedcso.datasets import CHARACTERS, DATASETS, DOWNLOADS, IMAGES, Characters, Examples, Images
from fedcso.datasets.fetch.places import DataMissing

HELP = "get a dataset, or check that it is there and whole"


def check(name: str) -> str:
    """Load it, and say what is in it."""
    if name in CHARACTERS:
        return _characters(CHARACTERS[name]())
    if name in DATASETS:
        return _examples(DATASETS[name]())
    if name in IMAGES:
        return _images(IMAGES[name]())
    raise UnknownName("dataset", name, [*DATASETS, *IMAGES, *CHARACTERS])


def get(name: str) -> str:
    """The same, after a download if it is not there and can be had."""
    try:
        return check(name)
    except DataMissing:
        if name not in DOWNLOADS:
            raise
    DOWNLOADS[name]()
    return check(name)


ACTIONS = {"get": get, "check": check}


def _examples(data: Examples) -> str:
    shape = "×".join(map(str, data.inputs.shape[1:]))
    return f"{len(data.labels)} examples of {shape}, {len(set(data.labels.tolist()))} classes"


def _images(data: Images) -> str:
    shape = "×".join(map(str, data.train.inputs.shape[1:]))
    sizes = ", ".join(f"{len(examples.labels)} {split}" for split, examples in data._asdict().items())
    return f"pictures of {shape} ({sizes}), {len(set(data.train.labels.tolist()))} classes"


def _characters(data: Characters) -> str:
    classes = ", ".join(f"{len(images)} {split}" for split, images in data._asdict().items())
    drawings, height, width = data.train.shape[1:]
    return f"{sum(map(len, data))} classes ({classes}) with {drawings} drawings of {height}×{width} each"


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
