"""Go on with a run that was interrupted or killed; it ends as if nothing had happened.

examples:
  fedcso resume runs/2026-01-31_120000_invariant_logistic_1a2b3c
"""

import importlib
from pathlib import Path

from fedcso.commands.common import simple_parser
from fedcso.errors import FedcsoError
from fedcso.folder import RunFolder

HELP = "go on with a run that was interrupted or killed"


def main(arguments: list[str]) -> int:
    """Hand the folder to the command that made it."""
    parser = simple_parser("resume", str(__doc__))
    parser.add_argument("folder", help="the run folder")
    folder = RunFolder.open(Path(parser.parse_args(arguments).folder))
    config = folder.config()
    command = config.get("command")
    if command != "reproduce" and "problem" not in config:
        raise FedcsoError(f"{folder.path / 'config.yaml'} does not say which problem it is for")
    module = (
        importlib.import_module(f"fedcso.commands.{command}")
        if command in ("run", "sweep", "reproduce", "flower")
        else None
    )
    if module is None:
        raise FedcsoError(f"{folder.path / 'config.yaml'}: command = {command!r} is none that can be resumed")
    return int(module.resume(folder))
