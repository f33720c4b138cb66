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

from fedcso.cli.options import read_options
from fedcso.cli.parser import DRY_RUN, add_dry_run
from fedcso.runs.folder import RunFolder


def main(arguments: list[str]) -> int:
    """Start a new run."""
    settings = read_options("run", str(__doc__), arguments, add_dry_run)
    is_dry = settings.pop(DRY_RUN)
    from fedcso.cli.work import dry_run, run

    if is_dry:
        return dry_run.dry_run(lambda place: run.start(dry_run.here(settings, place), arguments))
    return run.start(settings, arguments)


def resume(folder: RunFolder, processes: int | None = None) -> int:
    """Carry out what is left of a run; with the engine distributed the number of processes may change."""
    from fedcso.cli.work import run

    return run.resume(folder, processes)


def follow() -> int:
    """Run on a rank other than the first: follow it, with the same settings, files and data."""
    from fedcso.cli.work import run

    return run.follow()
