"""Compare runs: the last evaluation of every method as mean ± 95 % interval over seeds, and paired differences.

Differences to the first method (or --baseline) are taken seed by seed, so that effects of the seed cancel.
Runs must have the same test data, whatever they were trained on; others are only compared with --allow-different-data.

examples:
  fedcso compare runs/A                        the methods of one run
  fedcso compare runs/A runs/B --metric loss
  fedcso compare runs/A runs/B --allow-different-data
"""

from fedcso.runs.parser import simple_parser


def main(arguments: list[str]) -> int:
    """Print the last evaluations and the paired differences."""
    parser = simple_parser("compare", str(__doc__))
    parser.add_argument("folder", nargs="+", help="run folders")
    parser.add_argument(
        "--metric", help="the metric to compare; by default the most informative one that all runs have"
    )
    parser.add_argument("--baseline", help="the method to compare with; by default the first")
    parser.add_argument("--allow_different_data", action="store_true", help="compare runs even if their data differ")
    options = parser.parse_args(arguments)
    from fedcso.studies.compare import compare

    wanted = {"metric": options.metric, "baseline": options.baseline}
    print(compare(*options.folder, **wanted, allow_different_data=options.allow_different_data), end="")
    return 0
