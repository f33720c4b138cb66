"""Redraw the figures, tables and report of run folders from their metrics, also of unfinished runs.

With one of the options for a paper, draw one metric in the given size instead, as PDF with embedded fonts and as PNG.

examples:
  fedcso report runs/2026-01-31_120000_invariant_logistic_1a2b3c
  fedcso report runs/*
  fedcso report runs/… --metric accuracy --x samples --size 3.3x2.5     a column of a paper
  fedcso report runs/… --legend direct --methods FCSG FCSG-M --labels 'FCSG-M=FCSG-M (ours)'
"""

from fedcso.runs.parser import simple_parser


def main(arguments: list[str]) -> int:
    """Write the report, or a figure for a paper, of every folder."""
    parser = simple_parser("report", str(__doc__))
    parser.add_argument("folder", nargs="+", help="run folders")
    group = parser.add_argument_group("a figure for a paper")
    group.add_argument("--metric", help="the metric; by default the one that models are chosen by")
    group.add_argument("--x", help="the horizontal axis: rounds, local-steps, samples, megabytes or seconds")
    group.add_argument("--size", metavar="WIDTHxHEIGHT", help="in inches, of the whole figure; 3.3x2.5 by default")
    group.add_argument("--legend", help="where methods are named: inside, outside, below, direct (at the curves), none")
    group.add_argument(
        "--labels", action="extend", nargs="+", metavar="METHOD=LABEL", help="other names of methods; they come first"
    )
    group.add_argument(
        "--methods", action="extend", nargs="+", metavar="METHOD", help="the methods to draw; all by default"
    )
    options = parser.parse_args(arguments).as_dict()
    folders = options.pop("folder")
    for_paper = {name: value for name, value in options.items() if value is not None}
    from fedcso.cli.work import report

    for path in folders:
        if for_paper:
            report.draw_for_paper(path, **for_paper)
        else:
            report.write_report(path)
    return 0
