"""Run folders that are named on the command line."""

from pathlib import Path

from fedcso.core.errors import FedcsoError
from fedcso.runs.folder import RunFolder


def open_run(path: str) -> RunFolder:
    """Open the folder of a run or sweep; raise `FedcsoError` if it is another folder, or names no problem."""
    folder = RunFolder.open(Path(path))
    settings = folder.config()
    if settings.get("command") == "reproduce":
        raise FedcsoError(
            f"{folder.path} is a reproduction, not a run: to redraw its figures, use fedcso resume {folder.path}"
        )
    if "problem" not in settings:
        raise FedcsoError(f"{folder.path / 'config.yaml'} does not name a problem; add a line `problem: NAME`")
    return folder
