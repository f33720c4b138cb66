"""Measure bias and noise of the gradient estimate from samples: is the inner batch large enough?

The estimate is examined at the starting point x_0 of a problem, or at the models in the folder of a run. For each inner
batch m the table shows the bias, which no number of rounds removes, beside the noise of a round, which averages out.
Below the table is a verdict on each m, which compares its bias with ‖∇F‖ and with the noise, and the m that would be
large enough. The exact gradient is not needed.

examples:
  fedcso diagnose invariant_logistic
  fedcso diagnose invariant_logistic --noise 2 --sizes 1,10,100 --target 0.01
  fedcso diagnose auprc --data breast_cancer --outer-batch 8 --local-steps 10
  fedcso diagnose runs/2026-01-31_120000_invariant_logistic_1a2b3c
"""

from fedcso.core.errors import FedcsoError
from fedcso.runs.parser import simple_parser


def main(arguments: list[str]) -> int:
    """Print a table and advice for every model."""
    parser = simple_parser("diagnose", str(__doc__))
    parser.usage = "fedcso diagnose PROBLEM|FOLDER [options]"
    parser.add_argument("--sizes", default="1,2,4,8,16,32", help="inner batch sizes m to examine, separated by commas")
    parser.add_argument("--samples", type=int, default=512, help="outer samples to draw, over all clients")
    parser.add_argument("--target", type=float, help="the bias to aim for; by default a tenth of ‖∇F‖ and the noise")
    parser.add_argument("--seed", type=int, default=0, help="seed of x_0 and of the samples")
    where = arguments[0] if arguments and not arguments[0].startswith("-") else None
    if where is None:
        parser.parse_args(arguments)  # --help ends here
        raise FedcsoError(
            "the problem or run folder is missing: name it first, as in `fedcso diagnose invariant_logistic`"
        )
    from fedcso.cli.work.diagnose import measure

    measure(parser, where, arguments[1:])
    return 0
