"""Run one or several methods on a problem, for several seeds, and write figures, tables and a report.

examples:
  fedcso run invariant_logistic
  fedcso run invariant_logistic --algorithm FCSG FCSG-M --noise 2 --inner-batch 100 --seeds 5
  fedcso run invariant_logistic --algorithm 'FCSG-M(momentum=0.5)' 'FCSG-M(momentum=0.1)' --rounds 50
  fedcso run nested_quadratic --algorithm SCAFFOLD --learning-rate 'cosine(0.1)'
  fedcso run examples/own_problem.py:task --rounds 20     your own problem: path.py:name or module:name
  fedcso run --config runs/…/config.yaml --seeds 10       repeat an earlier run with changes
  fedcso run invariant_logistic --print-config            print the complete configuration
  fedcso run invariant_logistic --dry-run                 say what would be run, and about how long it takes
  fedcso run classification --engine distributed --ranks 2    in several processes
"""

from fedcso.runs.folder import RunFolder
from fedcso.runs.options import read_options
from fedcso.runs.parser import DRY_RUN, add_dry_run


def main(arguments: list[str]) -> int:
    """Start a new run."""
    settings = read_options("run", str(__doc__), arguments, add_dry_run)
    is_dry = settings.pop(DRY_RUN)
    from fedcso.studies.run import start

    if is_dry:
        from fedcso.cli.work import dry_run

        return dry_run.dry_run(lambda place: start(dry_run.here(settings, place), arguments=arguments))
    from fedcso.reports.terminal import conclude

    result = start(settings, arguments=arguments)
    return conclude(RunFolder(result.folder), result.rows)


def resume(folder: RunFolder, processes: int | None = None, quiet: bool = False) -> int:
    """Carry out what is left of a run; with the engine distributed the number of processes may change."""
    from fedcso.reports.terminal import FAILED, conclude
    from fedcso.studies.run import resume_run

    result = resume_run(folder, processes=processes)
    if quiet:
        return FAILED if result.status == "failed" else 0
    return conclude(folder, result.rows)


def follow() -> int:
    """Run on a rank other than the first: follow it, with the same settings, files and data."""
    from fedcso.studies import following

    return following.follow()
