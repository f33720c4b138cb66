"""The whole suite, and the page made of it.

    python -m benchmarks            a quarter of an hour or more
    python -m benchmarks --quick    below five minutes on an idle machine: fewer repetitions
    python -m benchmarks page       only the page, from what was measured last

Every benchmark is a process of its own; what it measured is in `benchmarks/results/`, the page is
`docs/performance.md`.
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
    "operators",
    "attempts",
]


def main(arguments: list[str]) -> None:
    """Run all, one after the other; one that fails does not keep the others from being run."""
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
