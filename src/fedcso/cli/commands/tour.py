"""Show in a minute what this is for, on embedded data: two questions, each with a table, a figure and a sentence.

1. Noisy measurements leave a bias that more training does not remove. What does it cost, what does the usual mistake
   cost, and how is it removed?
2. Positives are rare, and spread over several sites. What do ordinary federated learning, each site alone and FCSG-M
   make of them?

The sentences are computed from the numbers of this run, and the page opens with them.

examples:
  fedcso tour
  fedcso tour --seeds 10
  fedcso tour --quick          a few seconds, to see whether everything works; the numbers mean little
"""

from fedcso.runs.folder import RunFolder
from fedcso.runs.parser import simple_parser


def main(arguments: list[str]) -> int:
    """Carry out a new tour."""
    parser = simple_parser("tour", str(__doc__))
    parser.add_argument("--quick", action="store_true", help="a smaller version that takes a few seconds")
    parser.add_argument("--seeds", type=int, help="the number of seeds (default: 5, with --quick 2)")
    parser.add_argument("--out", default="runs", metavar="FOLDER", help="where run folders are created")
    options = parser.parse_args(arguments)
    from fedcso.studies.tour import tour

    print(tour(quick=options.quick, seeds=options.seeds, out=options.out))
    return 0


def resume(folder: RunFolder) -> int:
    """Carry out what is left of a tour."""
    from fedcso.studies.tour import resume_tour

    print(resume_tour(folder))
    return 0
