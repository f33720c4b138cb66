"""Resume a run that was interrupted or killed; its results are the same as without the interruption.

examples:
  fedcso resume runs/2026-01-31_120000_invariant_logistic_1a2b3c
  fedcso resume runs/2026-01-31_120000_invariant_logistic_1a2b3c --ranks 4    with the engine distributed
"""

from pathlib import Path

from fedcso.cli.commands import COMMANDS, load_command, run
from fedcso.core.errors import FedcsoError, InvalidValue
from fedcso.engines import torchrun
from fedcso.runs.folder import RunFolder
from fedcso.runs.parser import simple_parser


def main(arguments: list[str]) -> int:
    """Resume the run with the command that created its folder."""
    parser = simple_parser("resume", str(__doc__))
    parser.add_argument("folder", help="the run folder")
    parser.add_argument("--ranks", type=int, help="processes of the engine distributed; by default as many as before")
    parser.add_argument("--quiet", action="store_true", help="do not print the results at the end")
    options = parser.parse_args(arguments)
    folder = RunFolder.open(Path(options.folder))
    name = folder.config().get("command")
    command = load_command(name) if name in COMMANDS else None
    if command is None or not hasattr(command, "resume"):
        able = [known for known in COMMANDS if hasattr(load_command(known), "resume")]
        raise FedcsoError(f"{folder.path / 'config.yaml'}: command = {name!r} must be one of {', '.join(able)}")
    if command is run:
        return run.resume(folder, options.ranks, options.quiet)
    if options.ranks is not None:
        raise InvalidValue("ranks", options.ranks, f"left out: a {name} runs in one process")
    if torchrun.size() > 1:
        raise FedcsoError(f"a {name} runs in one process; resume it without torchrun")
    return int(command.resume(folder))


follow = run.follow
"""What the other ranks do: only a run can be resumed by several processes."""
