"""The commands of `fedcso`, one a file: HELP in a line, main(arguments) -> exit code; and the table of all of them.

A command that can go on with a run folder has `resume(folder)`, one that several processes can share has `follow()`.
"""

import importlib
from types import ModuleType

from fedcso.core.errors import UnknownName

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
"""Every command by name, in the order of the overview. A new one is a file and a row here."""


def load_command(name: str) -> ModuleType:
    """Return the module of a command."""
    if name not in COMMANDS:
        raise UnknownName("command", name, COMMANDS)
    return importlib.import_module(f"{__name__}.{name.replace('-', '_')}")
