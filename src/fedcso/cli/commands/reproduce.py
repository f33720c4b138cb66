"""Reproduce a figure or table of the paper, and check what the paper states about it.

examples:
  fedcso reproduce figure1 --quick      a smaller version, less than a minute
  fedcso reproduce figure1              the full version, a few minutes
  fedcso reproduce table1 --quick       the theorems' bounds and exponents, less than a minute
  fedcso reproduce figure2 --quick      few-shot learning on embedded characters, four minutes
  fedcso reproduce figure2              the same on Omniglot, an hour (fedcso resume continues it)
  fedcso reproduce communication        accuracy against bytes, for several ways of sending u
"""

from pathlib import Path

from fedcso.cli.parser import simple_parser
from fedcso.experiments import EXPERIMENTS
from fedcso.runs.folder import RunFolder

HELP = "reproduce the paper's figures and tables and check its statements"


def main(arguments: list[str]) -> int:
    """Start a new reproduction."""
    parser = simple_parser("reproduce", str(__doc__))
    parser.add_argument("experiment", help=", ".join(EXPERIMENTS))
    parser.add_argument("--quick", action="store_true", help="a smaller version with fewer rounds, seeds and settings")
    parser.add_argument("--out", default="runs", metavar="FOLDER", help="where run folders are created")
    options = parser.parse_args(arguments)
    settings = EXPERIMENTS[options.experiment].settings(options.quick)
    config = {"command": "reproduce", "experiment": options.experiment, "quick": options.quick} | settings.flat()
    return resume(RunFolder.create(Path(options.out), options.experiment, config, {}))


def resume(folder: RunFolder) -> int:
    """Carry out what is left of a reproduction."""
    EXPERIMENTS[folder.config()["experiment"]].resume(folder)
    return 0
