"""Run all benchmarks and write `docs/performance.md`.

    python -m benchmarks            takes a quarter of an hour or more
    python -m benchmarks --quick    fewer repetitions, below five minutes on an idle machine
    python -m benchmarks page       only writes the page, from the latest results

Every benchmark runs in a new process and saves its results in `benchmarks/results/`.
"""

import subprocess
import sys
import time

from benchmarks import page

SUITE = [
    "invariant_logistic",
    "compiled",
    "maml",
    "auprc",
    "threads",
    "communication",
    "many_clients",
    "flower",
    "operators",
    "attempts",
    "cohorts",
    "start_up",
]


def main(arguments: list[str]) -> None:
    """Run all benchmarks one after the other, and continue if one fails."""
    failed = []
    for number, name in enumerate(SUITE if arguments != ["page"] else [], 1):
        print(f"\n=== {number}/{len(SUITE)} {name}", flush=True)
        started = time.monotonic()
        if subprocess.run([sys.executable, "-m", f"benchmarks.{name}", *arguments]).returncode:
            failed.append(name)
        print(f"({time.monotonic() - started:.0f} s)", flush=True)
    print(f"\npage {page.write()}")
    if failed:
        raise SystemExit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main(sys.argv[1:])
