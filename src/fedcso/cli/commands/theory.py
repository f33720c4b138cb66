"""Compute what the paper's theorems prescribe for an accuracy: settings, samples and rounds.

Name a problem, whose constants are known or estimated from samples, or give all six constants; constants that are given
replace those of the problem. The result is Table 1 of the paper with numbers. The bounds hold for the worst problem
with these constants; yours needs less. `fedcso reproduce table1` measures how much less, `fedcso diagnose` the bias.
If f is smooth, other estimators need fewer inner samples m: a second table compares them, and --estimator chooses one.

examples:
  fedcso theory invariant_logistic --epsilon 0.1
  fedcso theory nested_quadratic --epsilon 0.5 --clients 64
  fedcso theory invariant_logistic --steps 5000 --noise 2
  fedcso theory invariant_logistic --epsilon 0.1 --estimator extrapolated
  fedcso theory --epsilon 0.1 --clients 16 --S-f 0.25 --L-f 1 --S-g 0 --L-g 2 --sigma-g 1 --gap 1
"""

from fedcso.estimators import ESTIMATORS
from fedcso.runs.options import add_problem_options
from fedcso.runs.parser import Parser, simple_parser

OPTIONS = {
    "S_f": ("outer_smoothness", "smoothness of f"),
    "L_f": ("outer_slope", "largest slope of f"),
    "S_g": ("inner_smoothness", "smoothness of g"),
    "L_g": ("inner_slope", "largest slope of g"),
    "sigma_g": ("inner_noise", "standard deviation of g over the inner samples"),
    "gap": ("gap", "F(x_0) − F*"),
}
"""Options that give a constant: its field in `Constants`, and its meaning."""


def main(arguments: list[str]) -> int:
    """Print the constants, Table 1 with numbers, and the commands that run the prescribed settings."""
    problem = arguments[0] if arguments and not arguments[0].startswith("-") else None
    parser = simple_parser("theory", str(__doc__))
    parser.usage = "fedcso theory [PROBLEM] [options]"
    _add_options(parser)
    if problem:
        from fedcso.runs.specs import task_maker

        parser.prog = f"fedcso theory {problem}"
        add_problem_options(parser, task_maker(problem), problem)
    else:
        parser.add_argument("--clients", type=int, default=16, help="N, the number of clients")
    values = parser.parse_args(arguments[1:] if problem else arguments).as_dict()
    from fedcso.cli.work.theory import prescribe_settings

    prescribe_settings(problem, values, parser.get_defaults().as_dict())
    return 0


def _add_options(parser: Parser) -> None:
    group = parser.add_argument_group("the aim")
    group.add_argument("--epsilon", type=float, help="ε: the mean of ‖∇F‖ to reach")
    group.add_argument("--steps", type=int, help="T: the number of steps to take, instead of ε")
    group.add_argument(
        "--outer_batch", type=int, default=1, help="b, outer samples per step (BSpiderBoost prescribes its own)"
    )
    group = parser.add_argument_group("the estimator")
    group.add_argument(
        "--estimator", default="plain", help=f"{', '.join(ESTIMATORS)}; all but the first are for a smooth f"
    )
    group.add_argument(
        "--bias_constant", type=float, metavar="NUMBER", help="C: a bound of mʳ times the bias of the estimator"
    )
    group = parser.add_argument_group("constants, instead of those of the problem")
    for option, (_, meaning) in OPTIONS.items():
        group.add_argument(f"--{option}", type=float, metavar="NUMBER", help=meaning)
    group = parser.add_argument_group("estimating the constants of a problem")
    group.add_argument("--radius", type=float, help="radius of the ball in which the iterates stay")
    group.add_argument(
        "--lowest", type=float, default=0.0, help="F*, or a lower bound of it, if the problem does not know it"
    )
    group.add_argument("--samples", type=int, default=100, help="outer samples of an estimate")
    group.add_argument("--seed", type=int, default=0, help="seed of x_0 and of the samples")
