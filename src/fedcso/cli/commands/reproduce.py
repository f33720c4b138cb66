"""Reproduce a figure or table of the paper; prints what the paper states beside what is measured here.

examples:
  fedcso reproduce figure1 --quick      a smaller version, in less than a minute
  fedcso reproduce figure1              the whole, in a few minutes
  fedcso reproduce table1 --quick       the theorems' bounds and exponents, measured, in less than a minute
  fedcso reproduce figure2 --quick      few-shot learning, on embedded characters, in four minutes
  fedcso reproduce figure2              on Omniglot, in an hour; fedcso resume goes on where it was stopped
  fedcso reproduce communication        what it costs to send u: accuracy against bytes
"""

from pathlib import Path

from fedcso.cli.parser import simple_parser
from fedcso.experiments import EXPERIMENTS
from fedcso.runs.folder import RunFolder

HELP = "the paper's figures and tables, with its statements checked"


def main(arguments: list[str]) -> int:
    """A new reproduction."""
    parser = simple_parser("reproduce", str(__doc__))
    parser.add_argument("experiment", help=f"one of: {', '.join(EXPERIMENTS)}")
    parser.add_argument("--quick", action="store_true", help="fewer rounds, seeds and settings")
    parser.add_argument("--out", default="runs", help="where run folders go")
    options = parser.parse_args(arguments)
    settings = EXPERIMENTS[options.experiment].settings(options.quick)
    config = {"command": "reproduce", "experiment": options.experiment, "quick": options.quick} | settings.flat()
    return resume(RunFolder.create(Path(options.out), options.experiment, config, {}))


def resume(folder: RunFolder) -> int:
    """Carry out what is left of it."""
    EXPERIMENTS[folder.config()["experiment"]].resume(folder)
    return 0
