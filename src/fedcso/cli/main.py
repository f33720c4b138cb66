"""The entry point of the command line: find the command, run it, and report errors."""

import logging
import os
import sys
from collections.abc import Sequence
from types import ModuleType

from fedcso.cli.commands import COMMANDS, load_command
from fedcso.core.errors import FedcsoError
from fedcso.core.notice import NOTICE
from fedcso.core.user_errors import explain
from fedcso.core.version import __version__
from fedcso.engines import torchrun

FAILED, INTERRUPTED = 1, 130

SHOW_TRACEBACK = "FEDCSO_TRACEBACK"
"""The environment variable with which an error in a user's code shows the whole traceback."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code: 0 for success, 1 for failure, 2 for bad input, 130 if interrupted."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    _log_to_terminal()
    try:
        if not arguments or arguments[0] in ("--help", "-h", "help"):
            print(overview())
            return 0
        if arguments[0] == "--version":
            print(f"fedcso {__version__}")
            return 0
        code = _run_command(load_command(arguments[0]), arguments)
        sys.stdout.flush()
        return code
    except FedcsoError as error:
        print(f"fedcso: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("fedcso: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # the output is no longer read, as after `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:  # no space or no permission: a traceback would not help
        where = f"{error.filename}: " if error.filename else ""
        print(f"fedcso: {where}{error.strerror or error}", file=sys.stderr)
        return FAILED
    except Exception as error:
        said = None if SHOW_TRACEBACK in os.environ else explain(error)
        if said is None:
            raise
        print(f"fedcso: {said}\n    (the whole traceback: {SHOW_TRACEBACK}=1 fedcso …)", file=sys.stderr)
        return said.exit_code


def _run_command(command: ModuleType, arguments: list[str]) -> int:
    """Run a command; under torchrun the first rank runs it, and the others follow the first."""
    if torchrun.size() > 1 and not hasattr(command, "follow"):
        raise FedcsoError(f"fedcso {arguments[0]} runs in one process; start it without torchrun")
    if torchrun.follows():
        return int(command.follow())
    try:
        return int(command.main(arguments[1:]))
    except FedcsoError:
        if torchrun.size() > 1:
            _release_followers()
        raise


def _release_followers() -> None:
    """Tell the other ranks that there is nothing to do, if they are still waiting for instructions."""
    from fedcso.engines import ranks  # late: it imports torch

    if not ranks.is_connected():
        ranks.release_followers()


def _log_to_terminal() -> None:
    """Show warnings and notices on the terminal; other messages only go to the log.txt of a run."""
    log = logging.getLogger("fedcso")
    log.setLevel(logging.INFO)
    if not log.handlers:
        handler = logging.StreamHandler()
        handler.setLevel(NOTICE)
        handler.setFormatter(logging.Formatter("fedcso: %(message)s"))
        log.addHandler(handler)


def overview() -> str:
    """Return the text of `fedcso --help`."""
    lines = [
        "fedcso: minimise (1/N) Σ_n E_ξ f( E_{η|ξ} g(x, ξ, η) ) over data that stays at its clients.",
        "",
        "commands (each has --help with examples):",
        *(f"  {name:10} {words}" for name, words in COMMANDS.items()),
        "",
        "to start:  fedcso tour",
    ]
    return "\n".join(lines)
