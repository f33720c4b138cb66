"""Go on with a run that was interrupted or killed; it ends as if nothing had happened.

examples:
  fedcso resume runs/2026-01-31_120000_invariant_logistic_1a2b3c
  fedcso resume runs/2026-01-31_120000_invariant_logistic_1a2b3c --ranks 4    (of the engine distributed)
"""

import importlib
from pathlib import Path

from fedcso.cli.parser import simple_parser
from fedcso.core.errors import FedcsoError, InvalidValue
from fedcso.runs.folder import RunFolder

HELP = "go on with a run that was interrupted or killed"


def main(arguments: list[str]) -> int:
    """Hand the folder to the command that made it."""
    parser = simple_parser("resume", str(__doc__))
    parser.add_argument("folder", help="the run folder")
    parser.add_argument("--ranks", type=int, help="processes of the engine distributed, if not as many as before")
    options = parser.parse_args(arguments)
    folder = RunFolder.open(Path(options.folder))
    config = folder.config()
    command = config.get("command")
    if command != "reproduce" and "problem" not in config:
        raise FedcsoError(f"{folder.path / 'config.yaml'} does not say which problem it is for")
    module = (
        importlib.import_module(f"fedcso.cli.commands.{command}")
        if command in ("run", "sweep", "reproduce", "flower")
        else None
    )
    if module is None:
        raise FedcsoError(f"{folder.path / 'config.yaml'}: command = {command!r} is none that can be resumed")
    if options.ranks is None:
        return int(module.resume(folder))
    if command != "run":
        raise InvalidValue("ranks", options.ranks, f"left out: a {command} has none")
    return int(module.resume(folder, options.ranks))
