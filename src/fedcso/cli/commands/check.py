"""Check your own problem, method or estimator: does it do what fedcso expects?

It looks at shapes, at the mean over the inner samples, at gradients, random numbers and metrics, and makes short runs,
also interrupted ones. For everything that is wrong it prints a sentence with what to do, and ends with exit code 1.

examples:
  fedcso check my.py:task                    a task, or a function that returns one; its arguments are options here
  fedcso check my.py:task --patients 20
  fedcso check my.py:Method                  a method; with settings: 'my.py:Method(inertia=0.3)'
  fedcso check my.py:Method --on my.py:task  on your own problem
  fedcso check my.py:estimator               an estimator
  fedcso check auprc --data my.csv --label y     a built-in problem with your own data
"""

from fedcso.core.errors import FedcsoError
from fedcso.runs.parser import simple_parser


def main(arguments: list[str]) -> int:
    """Print what was found; return 1 if something is wrong."""
    parser = simple_parser("check", str(__doc__))
    parser.usage = "fedcso check NAME [options of the problem]"
    parser.add_argument("--on", metavar="PROBLEM", help="a method: the problem to try it on; by default two small ones")
    if not arguments or arguments[0].startswith("-"):
        parser.parse_args(arguments)  # --help ends here
        raise FedcsoError("the name is missing: name what to check, as in `fedcso check my.py:task`")
    from fedcso.cli.work.check import check_named

    return check_named(parser, arguments[0], arguments[1:])
