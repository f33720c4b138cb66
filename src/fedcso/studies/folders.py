"""Run folders that a user names."""

from pathlib import Path

from fedcso.core.errors import FedcsoError
from fedcso.runs.folder import RunFolder

OTHERS = {
    "reproduce": "is a reproduction, not a run: to redraw its figures, use fedcso resume {path}",
    "fit": "is a fit, not a run: its results are in decision.html, and fedcso predict {path} scores new rows",
    "tour": "is a tour, not a run: its results are in report.html, which fedcso resume {path} writes again",
}
"""What to say of folders of commands that have no problem, by command."""


def open_run(path: str | Path) -> RunFolder:
    """Open the folder of a run or sweep; raise `FedcsoError` if it is another folder, or names no problem."""
    folder = RunFolder.open(Path(path))
    command = folder.config().get("command")
    if command in OTHERS:
        raise FedcsoError(f"{folder.path} {OTHERS[command].format(path=folder.path)}")
    require_problem(folder)
    return folder


def require_problem(folder: RunFolder) -> None:
    """Raise `FedcsoError` unless the settings of a folder name a problem."""
    if "problem" not in folder.config():
        raise FedcsoError(f"{folder.path / 'config.yaml'} does not name a problem; add a line `problem: NAME`")
