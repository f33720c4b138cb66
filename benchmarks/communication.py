"""W5: bytes per round, and rounds, bytes and seconds until a target is reached, for each method and q.

    python -m benchmarks.communication

Invariant logistic regression with 16 clients whose data differ; the target is an accuracy on test points. FCSG-M and
Acc-FCSG-M are also run with u sent in fewer bits or not at all, to show the cost of sending u.
"""

import sys
from typing import Any

from benchmarks.results import save
from benchmarks.timing import describe_machine
from fedcso.algorithms import ALGORITHMS
from fedcso.core.plan import Plan
from fedcso.core.trace import Trace
from fedcso.engines import run
from fedcso.problems import PROBLEMS
from fedcso.runs.specs import parse_codec

TARGET = 0.9
STEPS, QUICK_STEPS = 2000, 1000
METHODS = ["FedAvg", "FCSG", "FCSG-M", "Acc-FCSG-M", "SCAFFOLD"]
WAYS = ["full", "bfloat16", "inferred"]

RATE = {"learning_rate": 0.05}


def reached(trace: Trace) -> dict[str, Any] | None:
    """Return the first evaluation that reaches the target, or None."""
    return next((row for row in trace.rows if row["accuracy"] >= TARGET), None)


def main(quick: bool = False) -> None:
    describe_machine()
    task = PROBLEMS["invariant_logistic"](unlike_truth=0.3, test_points=10_000)
    rows = []
    columns = f"{'q':>4} {'bytes per round':>15} {'rounds':>7} {'bytes':>12} {'seconds':>8}"
    print(f"\nuntil accuracy {TARGET}\n  {'':22} {columns}", flush=True)
    for q in (10, 50) if quick else (1, 10, 50):
        for name in METHODS:
            for way in WAYS if name in ("FCSG-M", "Acc-FCSG-M") else WAYS[:1]:
                rounds = (QUICK_STEPS if quick else STEPS) // q
                plan = Plan(rounds, q, inner_batch=10, evaluate_every=max(1, rounds // 100))
                trace = run(ALGORITHMS[name](**RATE), task, plan, codec=parse_codec("u", way))
                costs, met = trace.costs, reached(trace)
                row = {
                    "method": name,
                    "u": way,
                    "q": q,
                    "bytes_per_round": (costs.bytes_up + costs.bytes_down) / costs.rounds,
                    "rounds": met and met["round"],
                    "bytes": met and met["bytes_up"] + met["bytes_down"],
                    "seconds": met and met["seconds"],
                    "accuracy": trace.rows[-1]["accuracy"],
                }
                rows.append(row)
                outcome = f"{met['round']:7} {row['bytes']:12,} {met['seconds']:8.2f}" if met else "  never"
                print(f"  {name + ', ' + way:22} {q:4} {row['bytes_per_round']:15,.0f} {outcome}", flush=True)
    save("communication", target=TARGET, rows=rows)


if __name__ == "__main__":
    main("--quick" in sys.argv)
