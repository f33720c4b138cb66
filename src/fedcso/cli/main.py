"""The command line `fedcso`: which command it is, and how mistakes are told."""

import logging
import os
import sys
from collections.abc import Sequence
from types import ModuleType

from fedcso.cli.commands import COMMANDS, load_command
from fedcso.cli.parser import UsageError
from fedcso.core.errors import FedcsoError
from fedcso.core.notice import NOTICE
from fedcso.core.version import __version__
from fedcso.engines import ranks
from fedcso.runs.callbacks import Interrupted

FAILED, BAD_INPUT, INTERRUPTED = 1, 2, 130
EXIT_CODES: dict[type[Exception], int] = {Interrupted: INTERRUPTED, ranks.RankLost: FAILED}
"""Of what is not the user's mistake."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns its exit code: 0 fine, 1 broken off, 2 bad input, 130 interrupted."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    _log_to_people()
    try:
        if not arguments or arguments[0] in ("--help", "-h", "help"):
            print(overview())
            return 0
        if arguments[0] == "--version":
            print(f"fedcso {__version__}")
            return 0
        code = _carry_out(load_command(arguments[0]), arguments)
        sys.stdout.flush()
        return code
    except (FedcsoError, UsageError) as error:
        print(f"fedcso: {error}", file=sys.stderr)
        return next((code for kind, code in EXIT_CODES.items() if isinstance(error, kind)), BAD_INPUT)
    except KeyboardInterrupt:
        print("fedcso: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # the reader of our output has gone, as `| head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:  # no space, no permission: nothing a traceback would explain
        print(f"fedcso: {error}", file=sys.stderr)
        return FAILED


def _carry_out(command: ModuleType, arguments: list[str]) -> int:
    """Run a command; under torchrun the first rank leads, and the others do what it says."""
    if ranks.size() > 1 and not hasattr(command, "follow"):
        raise FedcsoError(f"fedcso {arguments[0]} takes one process; start it without torchrun")
    if ranks.follows():
        return int(command.follow())
    try:
        return int(command.main(arguments[1:]))
    except FedcsoError:
        if not ranks.in_touch():  # the others still wait to be told what to do
            ranks.dismiss()
        raise


def _log_to_people() -> None:
    """Warnings and notices go to the terminal; everything else only into the run's log.txt."""
    log = logging.getLogger("fedcso")
    log.setLevel(logging.INFO)
    if not log.handlers:
        handler = logging.StreamHandler()
        handler.setLevel(NOTICE)
        handler.setFormatter(logging.Formatter("fedcso: %(message)s"))
        log.addHandler(handler)


def overview() -> str:
    """What `fedcso --help` says."""
    lines = [
        "fedcso: minimise (1/N) Σ_n E_ξ f( E_{η|ξ} g(x, ξ, η) ) over data that stays where it is.",
        "",
        "commands (each has --help with examples):",
        *(f"  {name:10} {load_command(name).HELP}" for name in COMMANDS),
        "",
        "start with:  fedcso run invariant_logistic",
    ]
    return "\n".join(lines)
