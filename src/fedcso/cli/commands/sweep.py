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

from typing import TYPE_CHECKING

from fedcso.runs.folder import RunFolder
from fedcso.runs.options import add_sweep_options, read_options
from fedcso.runs.parser import DRY_RUN, Parser, add_dry_run

if TYPE_CHECKING:
    from fedcso.studies.results import TuningResult


def main(arguments: list[str]) -> int:
    """Start a new sweep."""
    settings = read_options("sweep", str(__doc__), arguments, _add_options)
    is_dry = settings.pop(DRY_RUN)
    from fedcso.studies.tune import start

    if is_dry:
        from fedcso.cli.work import dry_run

        return dry_run.dry_run(
            lambda place: start(dry_run.here(settings, place)),
            then="the chosen settings of each method, with the seeds of --seeds and on test data",
            times=settings["trials"] * _count(settings["algorithm"]) if settings["search"] else 1,
        )
    return _print(start(settings))


def resume(folder: RunFolder) -> int:
    """Carry out what is left of a sweep."""
    from fedcso.studies.tune import resume_tuning

    return _print(resume_tuning(folder))


def _add_options(parser: Parser) -> None:
    add_sweep_options(parser)
    add_dry_run(parser)


def _count(methods: list[str] | str) -> int:
    return 1 if isinstance(methods, str) else len(methods)


def _print(result: "TuningResult") -> int:
    """Print what was tried and what was chosen; return the exit code."""
    from fedcso.reports.terminal import conclude, show

    show(result.tried, title="tried, best first")
    print("chosen settings, on test data:")
    return conclude(RunFolder(result.folder), result.rows)
