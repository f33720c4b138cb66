"""Run a federation's app on its SuperLink, and follow it; the run folder is as every other, with the sites' table.

examples:
  fedcso flower run trial
  fedcso resume trial/runs/…        after an interruption
"""

import json
import shutil
import sys
import time
from pathlib import Path
from typing import Any

from fedcso.cli.parser import simple_parser
from fedcso.core.errors import FedcsoError
from fedcso.federation.deploy.deployment import CONNECTION, Deployment
from fedcso.federation.journal import FILE
from fedcso.federation.options import Federation
from fedcso.reports.recorded import table_in
from fedcso.reports.terminal import FAILED, show_models
from fedcso.runs.callbacks import Interrupted
from fedcso.runs.config import RunConfig
from fedcso.runs.folder import RunFolder
from fedcso.runs.progress import Display, display

HELP = "run a federation's app and follow it"

LOOK_SECONDS = 0.5
START_SECONDS = 300.0
FULL = 1_000_000
"""With fewer bytes left, that is why a run broke off: it could not even write that down."""


def main(arguments: list[str]) -> int:
    """A new run."""
    parser = simple_parser("flower run", str(__doc__))
    parser.add_argument("folder", help="the federation's folder")
    deployment = Deployment.open(Path(parser.parse_args(arguments).folder))
    deployment.address()  # refuses a federation that was never up
    settings = deployment.config()
    config = RunConfig.from_flat(settings, deployment.package)
    data = {"sites": Federation.from_flat(settings).sites, "federation": str(deployment.folder)}
    return follow(deployment, RunFolder.create(Path(config.out), config.title, settings, data, config.sources()))


def resume(folder: RunFolder) -> int:
    """Go on with a run."""
    place = folder.environment()["data"].get("federation")
    if not place:
        raise FedcsoError(f"{folder.path} does not say which federation it belongs to")
    folder.require_same_sources()
    return follow(Deployment.open(Path(place)), folder)


def follow(deployment: Deployment, folder: RunFolder) -> int:
    """Start a run of the app in a folder, and show how it goes until it has ended."""
    folder.mark("starting")
    said = (folder.path / "log.txt").stat().st_size if (folder.path / "log.txt").is_file() else 0
    outcome = deployment.flwr(
        "run", str(deployment.app), CONNECTION, "-c", f"run-folder={json.dumps(str(folder.path))}"
    )
    if outcome.returncode:
        folder.mark("interrupted")
        raise FedcsoError(f"Flower did not take the run: {' '.join((outcome.stdout + outcome.stderr).split())}")
    print(f"folder  {folder.path}", flush=True)
    try:
        with display() as shown:
            _watch(folder, shown, said)
    except KeyboardInterrupt:
        raise Interrupted(f"no longer followed; the run itself goes on in {folder.path}") from None
    return _end(deployment, folder)


def _watch(folder: RunFolder, shown: Display, said: int) -> None:
    """Until the coordinator's process has left the folder."""
    rounds, began = int(folder.config()["rounds"]), time.monotonic()
    log = folder.path / "log.txt"
    told: dict[str, int] = {}
    while folder.status == "starting" or folder.busy():
        if folder.status == "starting" and time.monotonic() - began > START_SECONDS:
            return
        for row in _newest(folder):
            label, done = f"{row['algorithm']} seed {row['seed']}", int(row["round"])
            if told.get(label) != done:
                shown.update(label, done, rounds, f"last answer after {row['seconds']} s")
                told[label] = done
        said = _repeat(log, said)
        time.sleep(LOOK_SECONDS)
    _repeat(log, said)


def _repeat(log: Path, said: int) -> int:
    """Show what the coordinator has warned of since; returns how far its log has been read."""
    if not log.is_file():
        return said
    with log.open() as lines:
        lines.seek(said)
        for line in lines.read().splitlines():
            for level in (" WARNING ", " ERROR "):
                if level in line:
                    print(f"fedcso: {line.partition(level)[2]}", file=sys.stderr, flush=True)
        return lines.tell()


def _newest(folder: RunFolder) -> list[dict[str, Any]]:
    """The last line of each method and seed."""
    return list({(row["algorithm"], row["seed"]): row for row in table_in(folder.path / FILE)}.values())


def _end(deployment: Deployment, folder: RunFolder) -> int:
    """How it ended, in a line or two."""
    if folder.status == "done":
        print((folder.path / "table.md").read_text(), end="")
        show_models(folder)
        for what, file in {"figure": "curves.png", "report": "report.html", "sites": FILE}.items():
            print(f"{what}  {folder.path / file}")
        return 0
    how = "broke off" if folder.status in ("running", "starting") else f"ended as {folder.status!r}"
    if shutil.disk_usage(folder.path).free < FULL:
        how += " (its disk is full)"
    words = f"{how}; see {folder.path / 'log.txt'} and {deployment.processes.folder}/*.log"
    print(f"{words}. To go on: fedcso resume {folder.path}")
    return FAILED
