"""Choose hyper-parameters on validation data by a grid or a search, then evaluate the chosen ones once on test data.

For small models the settings of a grid are run together, which costs little more than a single setting. A search uses
Optuna (pip install 'fedcso[sweep]') and keeps its study in the run folder; `fedcso resume` continues it. Settings are
compared by the metric that the problem's judge selects by, on validation data; without validation data by F, if the
problem can compute it exactly. The chosen settings are then run with other seeds and evaluated on the test data.

examples:
  fedcso sweep invariant_logistic --algorithm FCSG-M --grid learning_rate=0.01,0.005 momentum=0.1,0.5
  fedcso sweep nested_quadratic --algorithm FCSG FCSG-M --grid learning_rate=0.1,0.01 --metric loss
  fedcso sweep invariant_logistic --algorithm FCSG-M --search learning_rate=0.0001:0.1 --trials 20
"""

from fedcso.cli.options import read_options
from fedcso.cli.parser import DRY_RUN, Parser, add_dry_run
from fedcso.runs.folder import RunFolder


def main(arguments: list[str]) -> int:
    """Start a new sweep."""
    settings = read_options("sweep", str(__doc__), arguments, _options)
    is_dry = settings.pop(DRY_RUN)
    from fedcso.cli.work import dry_run, sweep

    if is_dry:
        return dry_run.dry_run(
            lambda place: sweep.start(dry_run.here(settings, place)),
            then="the chosen settings of each method, with the seeds of --seeds and on test data",
            times=settings["trials"] * _count(settings["algorithm"]) if settings["search"] else 1,
        )
    return sweep.start(settings)


def resume(folder: RunFolder) -> int:
    """Carry out what is left of a sweep."""
    from fedcso.cli.work import sweep

    return sweep.resume(folder)


def _options(parser: Parser) -> None:
    add_dry_run(parser)
    group = parser.add_argument_group("the sweep")
    group.add_argument("--grid", type=list[str] | str, default=[], metavar="NAME=VALUE,VALUE", help="values to try")
    group.add_argument("--search", type=list[str] | str, default=[], metavar="NAME=LOW:HIGH", help="a range to search")
    group.add_argument("--trials", type=int, default=20, help="the number of settings that a search tries")
    group.add_argument("--metric", help="the metric that decides, on validation data; by default the judge's")
    group.add_argument(
        "--tuning_seeds",
        type=list[int] | int | str,
        default=[1000, 1001, 1002],
        help="seeds of the runs that are compared",
    )


def _count(methods: list[str] | str) -> int:
    return 1 if isinstance(methods, str) else len(methods)
