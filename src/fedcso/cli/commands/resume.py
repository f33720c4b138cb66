"""Go on with a run that was interrupted or killed; it ends as if nothing had happened.

examples:
  fedcso resume runs/2026-01-31_120000_invariant_logistic_1a2b3c
  fedcso resume runs/2026-01-31_120000_invariant_logistic_1a2b3c --ranks 4    (of the engine distributed)
"""

from pathlib import Path

from fedcso.cli.commands import COMMANDS, load_command, run
from fedcso.cli.parser import simple_parser
from fedcso.core.errors import FedcsoError, InvalidValue
from fedcso.engines import ranks
from fedcso.runs.folder import RunFolder

HELP = "go on with a run that was interrupted or killed"


def main(arguments: list[str]) -> int:
    """Hand the folder to the command that made it."""
    parser = simple_parser("resume", str(__doc__))
    parser.add_argument("folder", help="the run folder")
    parser.add_argument("--ranks", type=int, help="processes of the engine distributed, if not as many as before")
    options = parser.parse_args(arguments)
    folder = RunFolder.open(Path(options.folder))
    settings = folder.config()
    name = str(settings.get("command"))
    command = load_command(name) if name in COMMANDS else None
    if command is None or not hasattr(command, "resume"):
        raise FedcsoError(f"{folder.path / 'config.yaml'}: command = {name!r} is none that can be resumed")
    if name != "reproduce" and "problem" not in settings:
        raise FedcsoError(f"{folder.path / 'config.yaml'} does not say which problem it is for")
    if command is run:
        return run.resume(folder, options.ranks)
    if options.ranks is not None:
        raise InvalidValue("ranks", options.ranks, f"left out: a {name} has none")
    if ranks.size() > 1:
        raise FedcsoError(f"a {name} takes one process; go on with it without torchrun")
    return int(command.resume(folder))


follow = run.follow
"""On a rank that does not lead: a run is the one thing that several processes go on with."""
