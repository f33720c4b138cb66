"""The commands of `fedcso`, one per file, and the list of their names.

A command has `HELP`, its line in the overview, and `main(arguments)`, which returns the exit code. A command whose run
folders can be resumed has `resume(folder)`; a command that several processes can share has `follow()`.
"""

import importlib
from types import ModuleType

from fedcso.core.errors import UnknownName

COMMANDS = (
    "fit",
    "run",
    "resume",
    "report",
    "compare",
    "decide",
    "predict",
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
"""The names of all commands, in the order of the overview. To add a command, add a file and its name here."""


def load_command(name: str) -> ModuleType:
    """Import and return the module of a command; raise `UnknownName` if there is no such command."""
    if name not in COMMANDS:
        raise UnknownName("command", name, COMMANDS)
    return importlib.import_module(f"{__name__}.{name.replace('-', '_')}")
