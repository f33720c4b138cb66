"""Reproduce a figure or table of the paper, and check what the paper states about it.

examples:
  fedcso reproduce figure1 --quick      a smaller version, less than a minute
  fedcso reproduce figure1              the full version, a few minutes
  fedcso reproduce table1 --quick       the theorems' bounds and exponents, less than a minute
  fedcso reproduce figure2 --quick      few-shot learning on embedded characters, three minutes
  fedcso reproduce figure2              the same on Omniglot, two hours or three (fedcso resume continues it)
  fedcso reproduce tracking             where one tracked inner value is right and where it is wrong, two minutes
  fedcso reproduce communication        accuracy against bytes, for several ways of sending u
  fedcso reproduce rare --quick         average precision against the share of positives, a minute
  fedcso reproduce table2 --data mnist  a part of Table 2: one of its data sets
  fedcso reproduce leaderboard --quick  a few methods on three problems, tuned alike; without --quick all of them
  fedcso reproduce leaderboard --from runs/… --algorithm my.py:Mine     your own method takes part
  fedcso reproduce leaderboard --processes 8                           parts of it side by side, on as many cores
  fedcso reproduce table2 --from docs/reproduction/outcomes/table2     only what has not been run yet
"""

from dataclasses import replace
from pathlib import Path

import yaml

from fedcso.experiments import EXPERIMENTS
from fedcso.runs.folder import RunFolder
from fedcso.runs.parser import add_dry_run, simple_parser


def main(arguments: list[str]) -> int:
    """Start a new reproduction."""
    parser = simple_parser("reproduce", str(__doc__))
    parser.add_argument("experiment", help=", ".join(EXPERIMENTS))
    parser.add_argument("--quick", action="store_true", help="a smaller version with fewer rounds, seeds and settings")
    parser.add_argument(
        "--data",
        action="extend",
        nargs="+",
        default=[],
        metavar="NAME",
        help="only these of the experiment's data sets",
    )
    parser.add_argument(
        "--algorithm",
        type=list[str],
        default=[],
        metavar="NAME",
        help="leaderboard: further methods, your own as path.py:Name",
    )
    parser.add_argument(
        "--from",
        dest="earlier",
        type=Path,
        action="extend",
        nargs="+",
        default=[],
        metavar="FOLDER",
        help="take the outcomes of finished runs from earlier folders of the experiment and run only the rest; those "
        "of the published pages are in docs/reproduction/outcomes",
    )
    parser.add_argument(
        "--processes",
        type=int,
        default=1,
        metavar="N",
        help="run N parts of the experiment side by side, each on a core of its own; the results are the same",
    )
    parser.add_argument("--out", default="runs", metavar="FOLDER", help="where run folders are created")
    add_dry_run(parser)
    options = parser.parse_args(arguments)
    from fedcso.experiments.outcomes import outcomes_of

    settings = EXPERIMENTS[options.experiment].settings(options.quick)
    settings = settings.limited_to(options.data) if options.data else settings
    settings = settings.with_methods(options.algorithm) if options.algorithm else settings
    settings = replace(settings, processes=options.processes)
    about = {"command": "reproduce", "experiment": options.experiment, "quick": options.quick, "only": options.data}
    about |= {"added": options.algorithm} if options.algorithm else {}
    known = {name: content for folder in options.earlier for name, content in outcomes_of(folder).files().items()}
    config = about | settings.flat()

    def start(out: Path) -> int:
        return resume(RunFolder.create(out, options.experiment, config, {}, settings.own_files(), known))

    if options.dry_run:
        from fedcso.cli.work.dry_run import dry_run

        print(yaml.safe_dump(config, sort_keys=False, allow_unicode=True))
        return dry_run(start, then="the other parts of the experiment, whose settings are above")
    return start(Path(options.out))


def resume(folder: RunFolder) -> int:
    """Carry out what is left of a reproduction."""
    EXPERIMENTS[folder.config()["experiment"]].resume(folder)
    return 0
