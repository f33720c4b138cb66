"""Measure the overhead of a round over real sites: an empty round, and each megabyte, with and without TLS.

    python -m benchmarks.flower [--quick]

Two sites on loopback, FCSG on a quadratic of d = 3 and of d = 2.5 million (20 MB of float64 each way), one local step.
The overhead of a round is the time until its last answer, minus the computing time that this site reports. The first
round is not counted.

With TLS, the empty round is compared with one of Flower's own programs and `send_and_receive` (`plain_flower`), which
run in turn with ours.
"""

import json
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import yaml

import benchmarks.plain_flower
from benchmarks.results import save
from benchmarks.timing import describe_machine
from fedcso.cli.main import main as fedcso
from fedcso.federation.deploy.commands import environment, program, supernode_command
from fedcso.federation.deploy.deployment import CONNECTION, Deployment, site_process
from fedcso.federation.deploy.members import update_register
from fedcso.federation.deploy.processes import free_port
from fedcso.runs.tables import table_in

SIZES = {0: 3, 20: 2_500_000}
"""Megabytes sent each way, and the dimension of x for which that is so."""

SITES = ("0", "1")
TURNS = 2
"""How often Flower's own programs and ours take turns."""


TLS, OPEN = "TLS, keys", "no TLS"
OURS, PLAIN = "ours", "Flower's own"


class Overhead(NamedTuple):
    """How long rounds take without computing, in seconds."""

    name: str
    megabytes: int
    median: float
    fastest: float
    slowest: float

    @classmethod
    def of(cls, name: str, megabytes: int, seconds: list[float]) -> "Overhead":
        """Sum up rounds, and print them."""
        found = cls(name, megabytes, statistics.median(seconds), min(seconds), max(seconds))
        spread = f"{found.fastest:12.1f} … {found.slowest:5.1f}"
        print(f"  {name:24} {megabytes:12} {found.median:8.1f} {spread}", flush=True)
        return found


def main(quick: bool = False) -> None:
    """Measure rounds of our own, then empty ones in turn with Flower's own programs."""
    describe_machine()
    rounds = 3 if quick else 5
    print(f"\nA round over two sites, {rounds - 1} rounds each: seconds without computing")
    print(f"  {'':24} {'MB each way':>12} {'median':>8} {'fastest … slowest':>20}")
    rows = []
    for security, flags in {TLS: [], OPEN: ["--insecure"]}.items():
        with tempfile.TemporaryDirectory() as place, _started(Path(place) / "ours", flags, rounds) as ours:
            rows += [
                Overhead.of(security, megabytes, _rounds(ours, dimension)) for megabytes, dimension in SIZES.items()
            ]
    compared = compare_with_plain_flower(rounds)
    save("flower", rows=[row._asdict() for row in rows], compared=[row._asdict() for row in compared])


def compare_with_plain_flower(rounds: int) -> list[Overhead]:
    """Run empty rounds of both in turn."""
    with (
        tempfile.TemporaryDirectory() as place,
        _started(Path(place) / "ours", [], rounds) as ours,
        _plain(Path(place) / "plain") as plain,
    ):
        found: dict[str, list[float]] = {PLAIN: [], OURS: []}
        for _ in range(TURNS):
            found[PLAIN] += _plain_rounds(plain, rounds)
            found[OURS] += _rounds(ours, SIZES[0])
    print(f"\nEmpty rounds of Flower's own programs with send_and_receive, and ours, in {TURNS} turns, TLS and keys")
    return [Overhead.of(name, 0, seconds) for name, seconds in found.items()]


@contextmanager
def _started(folder: Path, flags: list[str], rounds: int) -> Iterator[Deployment]:
    """Start a federation as users do, and stop it at the end."""
    options = ["--problem", "nested_quadratic", "--algorithm", "FCSG", "--sites", str(len(SITES))]
    _call(
        ["flower", "init", str(folder), *options, "--rounds", str(rounds), "--local-steps", "1", "--inner-batch", "1"]
    )
    deployment = Deployment.open(folder)
    try:
        _call(["flower", "up", str(folder), *flags])
        yield deployment
    finally:
        deployment.processes.stop()


def _rounds(deployment: Deployment, dimension: int) -> list[float]:
    """Return the overhead of every round but the first of a run."""
    with tempfile.TemporaryDirectory(dir=deployment.folder) as out:
        settings = deployment.config() | {"dimension": dimension, "out": out}
        (deployment.package / "config.yaml").write_text(yaml.safe_dump(settings))
        _call(["flower", "run", str(deployment.folder)])
        (run,) = Path(out).iterdir()
        slowest: dict[int, float] = {}
        for row in table_in(run / "sites.csv"):
            slowest[row["round"]] = max(slowest.get(row["round"], 0.0), row["seconds"] - row["computing"])
        return [seconds for round, seconds in slowest.items() if round > 1]


@contextmanager
def _plain(folder: Path) -> Iterator[Deployment]:
    """Start Flower's own programs, with TLS and keys, and an app whose rounds are empty."""
    _call(["flower", "init", str(folder), "--problem", "nested_quadratic", "--sites", str(len(SITES))])
    deployment = Deployment.open(folder)
    for file in ("client_app.py", "server_app.py"):
        shutil.copy(Path(benchmarks.plain_flower.__file__).with_name(file), deployment.package)
    deployment.make_keys(SITES)
    try:
        deployment.start_superlink(program=[program("flower-superlink")])
        port = deployment.address()["control"]  # the only one of Flower's own program
        update_register(deployment)
        for site in SITES:
            keys = deployment.keys / "ca.crt", deployment.site_key(site)
            command = supernode_command(free_port(), f"127.0.0.1:{port}", {"site": site}, *keys)
            command += ["--isolation", "subprocess"]  # the last one counts
            deployment.processes.start(site_process(site), command, environment(folder / "sites" / site))
        listed = ("supernode", "list", CONNECTION, "--format", "json")
        _wait_until(lambda: deployment.flwr(*listed).stdout.count('"online"') == len(SITES))
        yield deployment
    finally:
        deployment.processes.stop()


def _plain_rounds(deployment: Deployment, rounds: int) -> list[float]:
    """Return the seconds of every round but the first of a run of the plain app."""
    with tempfile.TemporaryDirectory(dir=deployment.folder) as place:
        (Path(place) / "rounds.json").write_text(json.dumps(rounds))
        outcome = deployment.flwr("run", str(deployment.app), CONNECTION, "-c", f"run-folder={json.dumps(place)}")
        if outcome.returncode:
            raise SystemExit(outcome.stdout + outcome.stderr)
        _wait_until((Path(place) / "seconds.json").is_file)
        return list(json.loads((Path(place) / "seconds.json").read_text())[1:])


def _wait_until(condition: Callable[[], bool], seconds: float = 600.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise SystemExit("it did not happen in time")
        time.sleep(0.5)


def _call(arguments: list[str]) -> None:
    code = fedcso(arguments)
    if code:
        raise SystemExit(code)


if __name__ == "__main__":
    main("--quick" in sys.argv)
