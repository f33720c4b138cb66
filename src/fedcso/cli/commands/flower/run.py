"""Run a federation's app on its SuperLink and follow it; the run folder also has a table of the sites.

If sites with tables rank rare positives (auprc, auroc, cross_entropy), each is asked once at the end how many positives
and negatives have a score of the chosen model in each of many bins. These counts give calibrated probabilities and
thresholds, what they do on test data, and a model that runs without fedcso. What thresholds should achieve is an option
here, as for `fedcso decide`; the defaults are those of the fit that `fedcso flower init --from` has named.

examples:
  fedcso flower run trial
  fedcso flower run trial --precision 0.5       with a threshold for alerts of which half are right
  fedcso resume trial/runs/…        after an interruption
"""

import json
import shutil
import sys
import time
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from fedcso.core.errors import FedcsoError
from fedcso.federation.deploy.deployment import CONNECTION, Deployment
from fedcso.federation.journal import FILE
from fedcso.federation.options import THRESHOLDS, Federation, read_wishes, run_config
from fedcso.reports.terminal import FAILED, show_models
from fedcso.reports.wishes import Wishes
from fedcso.runs.callbacks import Interrupted
from fedcso.runs.folder import RunFolder
from fedcso.runs.initial_model import FILE as FILE_OF_INIT
from fedcso.runs.parser import simple_parser
from fedcso.runs.progress import Display, display
from fedcso.runs.tables import table_in

LOOK_SECONDS = 0.5
START_SECONDS = 300.0
FULL = 1_000_000
"""With fewer bytes left on the disk, that is why a run failed: it could not even write the reason."""


def main(arguments: list[str]) -> int:
    """Start a new run."""
    parser = simple_parser("flower run", str(__doc__))
    parser.add_argument("folder", help="the folder of the federation")
    parser.add_class_arguments(Wishes, as_group=False)
    deployment = Deployment.open(Path(parser.parse_args(arguments).folder))
    deployment.address()  # raises if the federation was never started
    settings = deployment.config()
    parser.set_defaults(asdict(read_wishes(settings)))
    options = parser.parse_args(arguments).as_dict()
    wishes = Wishes(**{wish.name: options[wish.name] for wish in fields(Wishes)})
    settings |= {THRESHOLDS: asdict(wishes)}
    config = run_config(settings, deployment.package)
    data = {"sites": Federation.from_flat(settings).sites, "federation": str(deployment.folder)}
    files = {FILE_OF_INIT: (deployment.package / config.init).read_bytes()} if config.init else {}
    folder = RunFolder.create(Path(config.out), config.title, settings, data, config.sources(), files)
    return follow(deployment, folder)


def resume(folder: RunFolder) -> int:
    """Carry out what is left of a run."""
    place = folder.environment()["data"].get("federation")
    if not place:
        raise FedcsoError(
            f"{folder.path / 'env.json'} does not name the folder of the federation, so the run can't be resumed"
        )
    folder.require_same_sources()
    return follow(Deployment.open(Path(place)), folder)


def follow(deployment: Deployment, folder: RunFolder) -> int:
    """Start a run of the app in a run folder, and show its progress until it has ended."""
    folder.mark("starting")
    read = (folder.path / "log.txt").stat().st_size if (folder.path / "log.txt").is_file() else 0
    outcome = deployment.flwr(
        "run", str(deployment.app), CONNECTION, "-c", f"run-folder={json.dumps(str(folder.path))}"
    )
    if outcome.returncode:
        folder.mark("interrupted")
        raise FedcsoError(f"Flower did not accept the run: {' '.join((outcome.stdout + outcome.stderr).split())}")
    print(f"folder  {folder.path}", flush=True)
    try:
        with display() as shown:
            _watch(folder, shown, read)
    except KeyboardInterrupt:
        raise Interrupted(f"no longer followed; the run continues in {folder.path}") from None
    return _conclude(deployment, folder)


def _watch(folder: RunFolder, shown: Display, read: int) -> None:
    """Show progress and warnings until the coordinator's process has ended."""
    rounds, began = int(folder.config()["rounds"]), time.monotonic()
    log = folder.path / "log.txt"
    shown_rounds: dict[str, int] = {}
    while folder.status == "starting" or folder.busy():
        if folder.status == "starting" and time.monotonic() - began > START_SECONDS:
            return
        for row in _newest(folder):
            label, done = f"{row['algorithm']} seed {row['seed']}", int(row["round"])
            if shown_rounds.get(label) != done:
                shown.update(label, done, rounds, f"last answer after {row['seconds']} s")
                shown_rounds[label] = done
        read = _show_warnings(log, read)
        time.sleep(LOOK_SECONDS)
    _show_warnings(log, read)


def _show_warnings(log: Path, read: int) -> int:
    """Print the warnings and errors in a log after position `read`; return the position up to which it was read."""
    if not log.is_file():
        return read
    with log.open() as lines:
        lines.seek(read)
        for line in lines.read().splitlines():
            for level in (" WARNING ", " ERROR "):
                if level in line:
                    print(f"fedcso: {line.partition(level)[2]}", file=sys.stderr, flush=True)
        return lines.tell()


def _newest(folder: RunFolder) -> list[dict[str, Any]]:
    """Return the last row of each method and seed."""
    return list({(row["algorithm"], row["seed"]): row for row in table_in(folder.path / FILE)}.values())


def _conclude(deployment: Deployment, folder: RunFolder) -> int:
    """Print how a run ended; return the exit code."""
    if folder.status == "done":
        print((folder.path / "table.md").read_text(), end="")
        show_models(folder)
        written = {"figure": "curves.png", "report": "report.html", "sites": FILE}
        if (folder.path / "decisions.md").is_file():
            print((folder.path / "decisions.md").read_text().partition("\n![")[0])
            written |= {"decide": "decisions.md", "model": "model"}
        for what, file in written.items():
            print(f"{what:7} {folder.path / file}")
        return 0
    how = "the run failed" if folder.status in ("running", "starting") else f"the run ended as {folder.status!r}"
    if shutil.disk_usage(folder.path).free < FULL:
        how += " (the disk is full)"
    words = f"{how}; see {folder.path / 'log.txt'} and {deployment.processes.folder}/*.log"
    print(f"{words}; to continue: fedcso resume {folder.path}")
    return FAILED
