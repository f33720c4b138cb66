"""Check what a name stands for, with the options of a problem."""

from fedcso.checks.checking import TASK, check, find_named, kind_of
from fedcso.checks.finding import Outcome
from fedcso.core.task import Task
from fedcso.runs.config import option_names
from fedcso.runs.options import add_problem_options
from fedcso.runs.parser import Parser
from fedcso.runs.specs import make_task, task_maker

WRONG = 1
"""The exit code if something is wrong."""


def check_named(parser: Parser, name: str, arguments: list[str]) -> int:
    """Print what was found; return the exit code."""
    parser.prog = f"fedcso check {name}"
    found = find_named(name)
    kind, options = kind_of(found, name), set()
    if kind is TASK and not isinstance(found, Task):
        add_problem_options(parser, found, name)
        options = option_names(name)
    given = parser.parse_args(arguments).as_dict()
    on = None if given["on"] is None else make_task(task_maker(given["on"]), {}, given["on"])
    findings = check(name, on=on, tell=_tell, **{option: value for option, value in given.items() if option in options})
    print(findings.conclusion())
    if not findings.fine:
        return WRONG
    print(f"next     {' '.join([kind.next_command.format(name=name), *arguments])}")
    return 0


def _tell(outcome: Outcome) -> None:
    """Print what has passed, while the other checks go on."""
    if outcome.passed:
        print(outcome, flush=True)
