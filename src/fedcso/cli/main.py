"""The command line `fedcso`: which command it is, and how mistakes are told."""

import importlib
import logging
import os
import sys
from collections.abc import Sequence
from types import ModuleType

from fedcso.cli.parser import UsageError
from fedcso.core.errors import FedcsoError, UnknownName
from fedcso.core.notice import NOTICE
from fedcso.core.version import __version__
from fedcso.engines import ranks
from fedcso.runs.study import Interrupted

COMMANDS = (
    "run",
    "resume",
    "report",
    "compare",
    "sweep",
    "reproduce",
    "theory",
    "diagnose",
    "flower",
    "check-site",
    "list",
    "data",
    "doctor",
)
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
        if arguments[0] not in COMMANDS:
            raise UnknownName("command", arguments[0], COMMANDS)
        command = _command(arguments[0])
        code = int(_command("run").follow() if ranks.follows() else command.main(arguments[1:]))
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
        *(f"  {name:10} {_command(name).HELP}" for name in COMMANDS),
        "",
        "start with:  fedcso run invariant_logistic",
    ]
    return "\n".join(lines)


def _command(name: str) -> ModuleType:
    return importlib.import_module(f"fedcso.cli.commands.{name.replace('-', '_')}")
