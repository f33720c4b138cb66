"""Measure the overhead of a round over real sites: an empty round, and each megabyte, with and without TLS.

    python -m benchmarks.flower [ROUNDS]

Two sites on loopback, FCSG on a quadratic of d = 3 and of d = 2.5 million (20 MB of float64 each way), one local step.
The overhead of a round is the time until its last answer, minus the computing time that this site reports. The first
round is not counted.
"""

import statistics
import sys
import tempfile
from pathlib import Path

import yaml

from benchmarks.timing import describe_machine
from fedcso.cli.main import main as fedcso
from fedcso.federation.deploy.deployment import Deployment
from fedcso.runs.tables import table_in

SIZES = {0: 3, 20: 2_500_000}
"""Megabytes sent each way, and the dimension of x for which that is so."""


def main() -> None:
    describe_machine()
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    print(f"\nA round over two sites, {rounds - 1} rounds each: seconds without computing")
    print(f"  {'':12} {'MB each way':>12} {'median':>8} {'fastest … slowest':>20}")
    for security, flags in {"TLS, keys": [], "no TLS": ["--insecure"]}.items():
        with tempfile.TemporaryDirectory() as place:
            overheads = _measure(Path(place) / "federation", flags, rounds)
        for megabytes, seconds in overheads.items():
            low, high = min(seconds), max(seconds)
            print(f"  {security:12} {megabytes:12} {statistics.median(seconds):8.1f} {low:12.1f} … {high:5.1f}")
        empty, full = (statistics.median(seconds) for seconds in overheads.values())
        print(f"  {security:12} per MB each way: {(full - empty) / max(SIZES):.2f} s", flush=True)


def _measure(folder: Path, flags: list[str], rounds: int) -> dict[int, list[float]]:
    """Return the overhead of every round but the first, by megabytes."""
    options = ["--problem", "nested_quadratic", "--algorithm", "FCSG", "--sites", "2", "--rounds", str(rounds)]
    _call(["flower", "init", str(folder), *options, "--local-steps", "1", "--inner-batch", "1"])
    deployment = Deployment.open(folder)
    settings = deployment.app / "federated" / "config.yaml"
    _call(["flower", "up", str(folder), *flags])
    try:
        result = {}
        for megabytes, dimension in SIZES.items():
            out = folder / f"runs-{megabytes}"
            settings.write_text(yaml.safe_dump(deployment.config() | {"dimension": dimension, "out": str(out)}))
            _call(["flower", "run", str(folder)])
            (run,) = out.iterdir()
            result[megabytes] = _overheads(run)
        return result
    finally:
        deployment.processes.stop()


def _overheads(run: Path) -> list[float]:
    slowest: dict[int, float] = {}
    for row in table_in(run / "sites.csv"):
        slowest[row["round"]] = max(slowest.get(row["round"], 0.0), row["seconds"] - row["computing"])
    return [seconds for round, seconds in slowest.items() if round > 1]


def _call(arguments: list[str]) -> None:
    code = fedcso(arguments)
    if code:
        raise SystemExit(code)


if __name__ == "__main__":
    main()
